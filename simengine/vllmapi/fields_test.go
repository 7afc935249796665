package vllmapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// FC-110: a stream in all its forms adds up to the answer in one piece: the same
// text of each choice, one role, one finish reason, usage only where asked and
// last, and exactly one [DONE].
func TestFC110StreamsAddUpToWholeAnswers(t *testing.T) {
	const chat, text = `"messages":[{"role":"user","content":"Tell me."}]`, `"prompt":"Tell me."`
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, benchEngine, 1, func(c *Config) { c.Reasoning = true })
		for _, path := range []string{chatPath, textPath} {
			prompt := map[string]string{chatPath: chat, textPath: text}[path]
			for _, members := range []string{
				``, `"n":2,`, `"max_tokens":1,`, `"max_tokens":40,`, `"max_tokens":300,"stop":["a"],`, `"max_tokens":300,"stop":["e w"],`,
				`"max_tokens":300,"stop":"o","include_stop_str_in_output":true,`, `"stop_token_ids":[128009],`,
			} {
				whole := b.post(path, `{`+members+prompt+`}`).whole(t)
				for _, usage := range []bool{true, false} {
					name := fmt.Sprintf("%s %s usage %v", path, members, usage)
					r := b.post(path, fmt.Sprintf(`{"stream":true,"stream_options":{"include_usage":%v},%s%s}`, usage, members, prompt))
					if n := strings.Count(r.Body.String(), "[DONE]"); n != 1 {
						t.Errorf("%s: %d times [DONE]", name, n)
					}
					checkStream(t, name, r.events(t), whole, usage, path == chatPath)
				}
			}
		}
		b.idle()
	})
}

func checkStream(t *testing.T, name string, events []reading, whole reading, usage, chat bool) {
	t.Helper()
	if usage {
		last := events[len(events)-1]
		if last.Usage == nil || len(last.Choices) != 0 || last.Usage.CompletionTokens != whole.Usage.CompletionTokens || last.Usage.PromptTokens != whole.Usage.PromptTokens {
			t.Errorf("%s: the last event is %+v", name, last)
		}
		if d := last.Usage.PromptTokensDetails; d == nil || d.CachedTokens > last.Usage.PromptTokens {
			t.Errorf("%s: details %+v", name, d)
		}
		events = events[:len(events)-1]
	}
	roles, finishes := map[int]int{}, map[int]string{}
	for i, e := range events {
		if e.Usage != nil || len(e.Choices) != 1 {
			t.Fatalf("%s: event %d is %+v", name, i, e)
		}
		c := e.Choices[0]
		if finishes[c.Index] != "" {
			t.Errorf("%s: choice %d goes on after its end", name, c.Index)
		}
		if c.Delta.Role != nil {
			roles[c.Index]++
		}
		if c.FinishReason != nil {
			finishes[c.Index] = *c.FinishReason
		}
	}
	for i, c := range whole.Choices {
		want := c.Text + c.Message.Content
		if got := said(events, i); got != want || finishes[i] != *c.FinishReason {
			t.Errorf("%s: choice %d says %q and ends with %s, want %q and %s", name, i, got, finishes[i], want, *c.FinishReason)
		}
		if chat && roles[i] != 1 {
			t.Errorf("%s: choice %d has %d roles", name, i, roles[i])
		}
	}
}

// FC-112: time to the first token depends on what is cached.
func TestFC112FirstTokensComeSoonerFromTheCache(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		ttft := func(prompt string) time.Duration {
			r := b.post(textPath, `{"prompt":`+prompt+`,"max_tokens":1,"stream":true}`)
			return r.flushes[1].at
		}
		cold := ttft(idPrompt(1, 10_000))
		same := ttft(idPrompt(1, 10_000))
		most := ttft(strings.TrimSuffix(idPrompt(1, 9000), "]") + "," + strings.TrimPrefix(idPrompt(50_000, 1000), "["))
		other := ttft(idPrompt(90_000, 10_000))
		// 10 ms, and 1 ms for each block of 16 that isn't cached; two steps of the
		// budget of 8192 tokens are 20 ms.
		ms := time.Millisecond
		if cold != 645*ms || same != 11*ms || most != 10*ms+1008*ms/16 || other != cold {
			t.Errorf("first tokens after %v cold, %v again, %v with 9000 of 10000 in common, %v cold", cold, same, most, other)
		}
	})
}

// FC-114: how a client sees each way of failing that isn't a fault of the
// engine: the status, and that the next request works.
func TestFC114RefusalsLeaveTheServerWell(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		for _, c := range []struct {
			path, body string
			status     int
		}{
			{chatPath, `{"messages":[{"role":"user","content":"` + strings.Repeat("long", 17_000) + `"}],"stream":true}`, 400},
			{chatPath, `{"model":"gone","messages":[{"role":"user","content":"x"}],"stream":true}`, 404},
			{chatPath, `{"messages":`, 400},
			{"/v1/responses/resp_none", ``, 405},
			{"/nowhere", `{}`, 404},
		} {
			if r := b.post(c.path, c.body); r.Code != c.status || strings.Contains(r.Header().Get("Content-Type"), "event-stream") {
				t.Errorf("%s %.30s: %d %s", c.path, c.body, r.Code, r.Body)
			}
			b.post(chatPath, `{"messages":[{"role":"user","content":"x"}],"max_tokens":2}`).whole(t)
		}
		b.idle()
	})
}

// 1,000 clients that leave at once, in all stages: a step later the engine is
// empty.
func TestAThousandClientsLeaveWithinOneStep(t *testing.T) {
	engine := benchEngine
	engine.MaxNumSeqs, engine.MaxNumBatchedTokens = 300, 512
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, engine, 1)
		ctx, leave := context.WithCancel(t.Context())
		for i := range 1000 {
			go b.do(ctx, http.MethodPost, chatPath, fmt.Sprintf(`{"stream":%v,"max_tokens":5000,"ignore_eos":true,"messages":[{"role":"user","content":"%d %s"}]}`, i%2 == 0, i, strings.Repeat("word", 20)))
		}
		time.Sleep(2 * time.Second)
		before := b.driver.Stats()
		if before.Running == 0 || before.Waiting == 0 || before.Running+before.Waiting != 1000 {
			t.Fatalf("%d running and %d waiting, want 1000 together", before.Running, before.Waiting)
		}
		leave()
		synctest.Wait()
		for b.driver.Stats().Steps == before.Steps {
			time.Sleep(time.Millisecond)
		}
		if s := b.driver.Stats(); s.Running != 0 || s.Waiting != 0 || s.KVUsage != 0 || s.Steps != before.Steps+1 {
			t.Errorf("%d running, %d waiting, %v of the blocks after %d steps", s.Running, s.Waiting, s.KVUsage, s.Steps-before.Steps)
		}
	})
}

// The same requests in any order and at any speed get the same bytes, but for
// ids and what the cache held.
func TestAnswersDontDependOnTheReadersSpeed(t *testing.T) {
	const body = `{"stream":true,"max_tokens":200,"ignore_eos":true,"messages":[{"role":"user","content":"Tell me."}]}`
	var slow string
	inBubble(t, func(t *testing.T, b *bench) {
		slow = b.do(t.Context(), "POST", chatPath, body, "X-Request-Id", "r").Body.String()
	})
	s := instant(t, func(*Config) {})
	b := &bench{Server: s, t: t}
	fast := b.do(t.Context(), "POST", chatPath, body, "X-Request-Id", "r").Body.String()
	if strip := func(s string) string { return created.ReplaceAllString(s, "") }; strip(slow) != strip(fast) {
		t.Errorf("step by step: %.600s\nat once: %.600s", slow, fast)
	}
}

// Log probabilities tell of each token that was generated, and no more.
func TestLogProbabilitiesTellOfEachToken(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		const rest = `"max_tokens":7,"ignore_eos":true,`
		type entry struct {
			Token string
			Top   []any `json:"top_logprobs"`
		}
		read := func(text string) (tokens string, n int) {
			var v struct {
				Choices []struct{ Logprobs struct{ Content []entry } }
			}
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			for _, c := range v.Choices {
				for _, e := range c.Logprobs.Content {
					if len(e.Top) != 3 {
						t.Errorf("%d alternatives, want 3", len(e.Top))
					}
					tokens += e.Token
					n++
				}
			}
			return tokens, n
		}
		const ask = `"logprobs":true,"top_logprobs":3,"messages":[{"role":"user","content":"x"}]}`
		r := b.post(chatPath, `{`+rest+ask)
		tokens, n := read(r.Body.String())
		if want := r.whole(t).Choices[0].Message.Content; tokens != want || n != 7 {
			t.Errorf("%d tokens are %q, want %q", n, tokens, want)
		}
		streamed := ""
		for _, f := range strings.Split(b.post(chatPath, `{"stream":true,`+rest+ask).Body.String(), "\n\n") {
			if data, ok := strings.CutPrefix(f, "data: {"); ok {
				more, _ := read("{" + data)
				streamed += more
			}
		}
		if streamed != tokens {
			t.Errorf("streamed %q, want %q", streamed, tokens)
		}
		var v struct {
			Choices []struct {
				Text     string
				Logprobs struct {
					Offsets []int            `json:"text_offset"`
					Tokens  []string         `json:"tokens"`
					Each    []*float64       `json:"token_logprobs"`
					Top     []map[string]any `json:"top_logprobs"`
				}
				Prompt []map[string]any `json:"prompt_logprobs"`
			}
		}
		r = b.post(textPath, `{`+rest+`"prompt":"a prompt","echo":true,"logprobs":2}`)
		if err := json.Unmarshal(r.Body.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		l := v.Choices[0].Logprobs
		if len(l.Tokens) != 3+7 || l.Each[0] != nil || l.Each[1] == nil || len(l.Top[1]) != 2 || len(v.Choices[0].Prompt) != 3 || v.Choices[0].Prompt[0] != nil {
			t.Errorf("echoed log probabilities are %+v", v)
		}
	})
}

var created = regexp.MustCompile(`"created":\d+|"created_cache_tokens":\d+`)
