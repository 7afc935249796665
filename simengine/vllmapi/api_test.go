package vllmapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	chatPath = "/v1/chat/completions"
	textPath = "/v1/completions"
)

// idPrompt is a prompt of n token ids, from first on.
func idPrompt(first, n int) string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(first + i)
	}
	return "[" + strings.Join(ids, ",") + "]"
}

// vLLM computes at least one token of a prompt, and so the whole last block.
func TestARepeatOf64TokensFinds48Cached(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		body := `{"model":"m","prompt":` + idPrompt(1, 64) + `,"max_tokens":1}`
		for i, want := range []int{0, 48, 48} {
			v := b.post(textPath, body).whole(t)
			if v.cached() != want || v.Usage.PromptTokens != 64 || v.Usage.CompletionTokens != 1 || v.Usage.TotalTokens != 65 {
				t.Errorf("request %d: usage %+v, cached %d, want %d", i, *v.Usage, v.cached(), want)
			}
		}
		b.idle()
	})
}

// A conversation's next turn finds what was generated, not only what was sent.
func TestTheSecondTurnFindsGeneratedBlocks(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		messages := `{"role":"system","content":"Be kind."},{"role":"user","content":"Hello?"}`
		cachedMin := 0
		for turn := range 6 {
			v := b.post(chatPath, `{"messages":[`+messages+`]}`).whole(t)
			// The key and value of the last token are computed with the next
			// one, which never came.
			if v.cached() != cachedMin {
				t.Errorf("turn %d: %d of %d tokens cached, want %d", turn, v.cached(), v.Usage.PromptTokens, cachedMin)
			}
			cachedMin = (v.Usage.TotalTokens - 1) / 16 * 16
			messages += fmt.Sprintf(`,{"role":"assistant","content":%q},{"role":"user","content":"And %d?"}`, v.Choices[0].Message.Content, turn)
		}
		b.idle()
	})
}

func TestCachesAreApartByModelAndSalt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, benchEngine, 1, func(c *Config) { c.ServedModels = []string{"adapter"} })
		text := ""
		for _, c := range []struct {
			members string
			cached  int
		}{
			{`"model":"m"`, 0}, {`"model":"m"`, 96}, {`"model":"adapter"`, 0}, {`"model":"adapter"`, 96},
			{`"cache_salt":"tenant"`, 0}, {`"cache_salt":"other"`, 0}, {`"cache_salt":"tenant"`, 96}, {`"temperature":0`, 96},
		} {
			v := b.post(textPath, `{`+c.members+`,"prompt":`+idPrompt(1, 100)+`}`).whole(t)
			if v.cached() != c.cached {
				t.Errorf("%s: %d tokens cached, want %d", c.members, v.cached(), c.cached)
			}
			if text == "" {
				text = v.Choices[0].Text
			}
			if v.Choices[0].Text != text {
				t.Errorf("%s: says %q, want %q", c.members, v.Choices[0].Text, text)
			}
		}
	})
}

func TestTooLongIsRefusedBeforeTheStreamStarts(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		for _, stream := range []string{"false", "true"} {
			for _, c := range []struct {
				prompt, output int
				param, message string
			}{
				{16_385, 1, "input_tokens", "This model's maximum context length is 16384 tokens. However, your prompt contains at least 16385 input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=16385)"},
				{20_000, 5, "input_tokens", "contains 20000 input tokens"},
				{16_384, 1, "max_tokens", "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)"},
				{10, 16_385, "max_tokens", "max_tokens=16385 cannot be greater than max_model_len=16384. Please request fewer output tokens. (parameter=max_tokens, value=16385)"},
			} {
				r := b.post(textPath, fmt.Sprintf(`{"prompt":%s,"max_tokens":%d,"stream":%s}`, idPrompt(1, c.prompt), c.output, stream))
				if m := r.refused(t, 400, "BadRequestError", c.param); !strings.Contains(m, c.message) {
					t.Errorf("message %q, want %q", m, c.message)
				}
				if ct := r.Header().Get("Content-Type"); ct != "application/json" {
					t.Errorf("Content-Type %q", ct)
				}
			}
		}
		chat := `{"messages":[{"role":"user","content":"` + strings.Repeat("abcd", 16_400) + `"}]}`
		if m := b.post(chatPath, chat).refused(t, 400, "BadRequestError", "input_tokens"); !strings.Contains(m, "at least 16385") {
			t.Errorf("message %q", m) // a tokenizer stops at the first token too many
		}
		// A reply that is longer than what is left is cut to it.
		if v := b.post(textPath, `{"prompt":`+idPrompt(1, 16_000)+`,"max_tokens":385,"ignore_eos":true}`).whole(t); v.Usage.TotalTokens != 16_384 || *v.Choices[0].FinishReason != "length" {
			t.Errorf("usage %+v, finish %s", *v.Usage, *v.Choices[0].FinishReason)
		}
		// The longest that fits.
		if v := b.post(textPath, `{"prompt":`+idPrompt(1, 16_000)+`,"max_tokens":384,"ignore_eos":true}`).whole(t); v.Usage.TotalTokens != 16_384 || *v.Choices[0].FinishReason != "length" {
			t.Errorf("usage %+v, finish %s", *v.Usage, *v.Choices[0].FinishReason)
		}
	})
}

func TestErrorsHaveVLLMsShape(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		const good = `{"messages":[{"role":"user","content":"x"}]}`
		for _, c := range []struct {
			name, method, path, body, contentType string
			status                                int
			answer                                string
		}{
			{"unknown model", "POST", chatPath, `{"model":"x","messages":[{"role":"user","content":"x"}]}`, "", 404,
				"{\"error\":{\"message\":\"The model `x` does not exist. Valid aliases: m.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"},
			{"bad JSON", "POST", chatPath, `{"model":`, "", 400,
				`{"error":{"message":"1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.9', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': 'Expecting value'}}","type":"Bad Request","param":"body.9","code":400}}`},
			{"not JSON by its header", "POST", chatPath, good, "text/plain", 400,
				`{"error":{"message":"1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed","type":"Bad Request","param":null,"code":400}}`},
			{"unknown path", "POST", "/v1/unknown", good, "", 404, `{"detail":"Not Found"}`},
			{"path below", "GET", "/v1/models/m/x", "", "", 404, `{"detail":"Not Found"}`},
			{"GET of a POST path", "GET", chatPath, "", "", 405, `{"detail":"Method Not Allowed"}`},
			{"POST of a GET path", "POST", "/health", good, "", 405, `{"detail":"Method Not Allowed"}`},
			{"no prompt", "POST", "/tokenize", `{}`, "", 400,
				`{"error":{"message":"2 validation errors:\n  {'type': 'missing', 'loc': 'body.prompt', 'msg': 'Field required', 'input': '<dict of 0 items>'}\n  ` +
					`{'type': 'missing', 'loc': 'body.messages', 'msg': 'Field required', 'input': '<dict of 0 items>'}","type":"Bad Request","param":"body.prompt","code":400}}`},
		} {
			header := []string{"Content-Type", c.contentType}
			if c.contentType == "" {
				header = nil
			}
			r := b.do(t.Context(), c.method, c.path, c.body, header...)
			if got := r.Body.String(); r.Code != c.status || !jsonEqual(t, got, c.answer) {
				t.Errorf("%s: answer %d %s\nwant %d %s", c.name, r.Code, got, c.status, c.answer)
			}
		}
		if allow := b.do(t.Context(), "GET", chatPath, "").Header().Get("Allow"); allow != "POST" {
			t.Errorf("Allow is %q, want POST", allow)
		}
		if r := b.do(t.Context(), "POST", chatPath, good, "Content-Type", "Application/JSON; charset=utf-8"); r.Code != 200 {
			t.Errorf("with a charset: %d %s", r.Code, r.Body)
		}
		b.idle()
	})
}

func jsonEqual(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatalf("%q: %v", a, err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

func TestABodyBeyondItsBoundIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, benchEngine, 1, func(c *Config) { c.MaxBody = 1000 })
		body := `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 1000) + `"}]}`
		if r := b.post(chatPath, body); r.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("answer %d %s", r.Code, r.Body)
		}
	})
}

func TestTokenizeAndDetokenize(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		var v struct {
			Count       int
			MaxModelLen int `json:"max_model_len"`
			Tokens      []token
		}
		r := b.post("/tokenize", `{"prompt":"größer als das"}`)
		if err := json.Unmarshal(r.Body.Bytes(), &v); err != nil || v.Count != 5 || len(v.Tokens) != 5 || v.MaxModelLen != 16_384 {
			t.Errorf("answer %d %s: %v", r.Code, r.Body, err)
		}
		ids, _ := json.Marshal(v.Tokens)
		if r := b.post("/detokenize", `{"tokens":`+string(ids)+`}`); !jsonEqual(t, r.Body.String(), `{"prompt":"größer als das"}`) {
			t.Errorf("answer %d %s", r.Code, r.Body)
		}
		const messages = `"messages":[{"role":"user","content":"Hello?"}]`
		r = b.post("/tokenize", `{`+messages+`}`)
		if err := json.Unmarshal(r.Body.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		ids, _ = json.Marshal(v.Tokens)
		a := b.post(chatPath, `{"max_tokens":9,`+messages+`}`).whole(t)
		c := b.post(textPath, `{"max_tokens":9,"prompt":`+string(ids)+`}`).whole(t)
		if a.Choices[0].Message.Content != c.Choices[0].Text || a.Usage.PromptTokens != v.Count {
			t.Errorf("a chat and its tokens are answered by %q and %q", a.Choices[0].Message.Content, c.Choices[0].Text)
		}
		if r := b.post("/tokenize", `{"prompt":"","add_special_tokens":false}`); !strings.Contains(r.Body.String(), `"tokens":[]`) {
			t.Errorf("no text: %s", r.Body)
		}
	})
}

func TestWhatTheServerTellsOfItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, benchEngine, 1, func(c *Config) { c.ServedModels = []string{"adapter"}; c.MaxModelLen = 5000 })
		get := func(path string) string { return b.do(t.Context(), "GET", path, "").Body.String() }
		created := time.Now().Unix()
		want := fmt.Sprintf(`{"object":"list","data":[
			{"id":"m","object":"model","created":%d,"owned_by":"vllm","root":"m","parent":null,"max_model_len":5000,"permission":[]},
			{"id":"adapter","object":"model","created":%d,"owned_by":"vllm","root":"adapter","parent":"m","max_model_len":null,"permission":[]}]}`, created, created)
		got := regexp.MustCompile(`"permission":\[[^]]*\]`).ReplaceAllString(get("/v1/models"), `"permission":[]`)
		if !jsonEqual(t, got, want) {
			t.Errorf("models are %s\nwant %s", got, want)
		}
		if got := get("/version"); !jsonEqual(t, got, `{"version":"`+Version+`"}`) {
			t.Errorf("version is %s", got)
		}
		for _, path := range []string{"/health", "/ping"} {
			if r := b.do(t.Context(), "GET", path, ""); r.Code != 200 || r.Body.Len() != 0 {
				t.Errorf("%s: %d %q", path, r.Code, r.Body)
			}
		}
		go b.post(textPath, `{"prompt":"x","max_tokens":50}`)
		synctest.Wait()
		if got := get("/load"); !jsonEqual(t, got, `{"server_load":1}`) {
			t.Errorf("load is %s", got)
		}
		b.idle()
	})
}
