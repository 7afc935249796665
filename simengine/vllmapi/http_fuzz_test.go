package vllmapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
)

// instant is a server whose engine takes next to no time.
func instant(t testing.TB, change func(*Config)) *Server {
	t.Helper()
	engine, err := simengine.New(simengine.Config{Blocks: 1025, MaxModelLen: 4096, Cost: simengine.Cost{Base: 1}})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Model: "m", ServedModels: []string{"adapter"}, Driver: live.New(engine, live.Options{}), Seed: 1}
	change(&c)
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Driver.(*live.Driver).Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return s
}

// Whatever comes, the answer is no fault of the server's: a status below 500,
// JSON where it says so, errors in the API's shape, and streams that end.
func FuzzHTTP(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join(recordings, Version, "exchanges", "*.txt"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		head, body, _ := strings.Cut(strings.Split(string(text), "\n< ")[0], "\n\n")
		method, path, _ := strings.Cut(strings.TrimPrefix(strings.Split(head, "\n")[0], "> "), " ")
		f.Add(method, path, "application/json", "", strings.TrimSpace(body))
	}
	tools := `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"enum":["é","x"]},"b":{"type":"array","items":{"type":"number"}}}}}}]`
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"x"}],"stream":true,"tool_choice":"required",` + tools + `}`,
		`{"messages":[{"role":"user","content":"x"}],"n":3,"logprobs":true,"top_logprobs":20,"return_token_ids":true,` + tools + `}`,
		`{"messages":[{"role":"user","content":"x"}],"stop":["a"],"stream":true,"logprobs":true,"echo":true,"include_reasoning":false}`,
		`{"prompt":["a",""],"echo":true,"max_tokens":0,"prompt_logprobs":3,"logprobs":2}`,
		`{"prompt":[[1,2],[3]],"stream":true,"n":2,"echo":true,"logprobs":0,"seed":-1}`,
		`{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":[{"type":"image","source":{"type":"url","url":"u"}}]}]}],"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"any"}}`,
		`{"input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"y"}],"stream":true,"tools":[{"type":"function","name":"f"}]}`,
		`{"input":["a","b"],"encoding_format":"base64","dimensions":3}`,
		`{"lora_name":"a","lora_path":"/p"}`,
	} {
		for _, path := range []string{chatPath, textPath, "/v1/messages", "/v1/responses", "/v1/embeddings", "/tokenize", "/v1/load_lora_adapter", "/sleep?level=1"} {
			f.Add("POST", path, "application/json", "1", body)
		}
	}
	s := instant(f, func(c *Config) {
		c.Reasoning, c.DevMode, c.RuntimeLoRA, c.StoredResponses = true, true, true, 10
	})
	f.Fuzz(func(t *testing.T, method, target, contentType, header, body string) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+target, strings.NewReader(body))
		if err != nil || r.URL.Path == "/metrics" {
			return
		}
		r.RequestURI = target
		for _, name := range []string{"X-Request-Id", "X-Vllm-Priority", "X-Data-Parallel-Rank", "Endpoint-Load-Metrics-Format"} {
			r.Header.Set(name, header)
		}
		r.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if r.URL.Path == "/sleep" {
			s.c.Driver.Wake()
		}
		if ctx.Err() != nil {
			t.Fatal("no answer in 10 s")
		}
		checkAnswer(t, w)
	})
}

func checkAnswer(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code >= 500 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	switch text := w.Body.String(); w.Header().Get("Content-Type") {
	case "application/json":
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("status %d: no JSON: %q", w.Code, text)
		}
		if w.Code >= 400 {
			checkError(t, w)
		}
	case "text/event-stream; charset=utf-8":
		if !strings.HasSuffix(text, "\n\n") {
			t.Fatalf("the stream ends with %q", text[max(0, len(text)-50):])
		}
		for _, e := range strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n") {
			_, data, _ := strings.Cut(e, "data: ")
			if data != "[DONE]" && !json.Valid([]byte(data)) {
				t.Fatalf("event %q", e)
			}
		}
		for _, end := range []string{"[DONE]", `{"type":"message_stop"}`, `"type":"response.completed"}`} {
			if strings.HasSuffix(text, end+"\n\n") {
				return
			}
		}
		t.Fatalf("the stream ends with %q", text[max(0, len(text)-50):])
	}
}

// checkError wants one of three shapes: OpenAI's with vLLM's types, Anthropic's,
// or the web framework's.
func checkError(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	var e struct {
		Detail string
		Type   string
		Error  struct {
			Message, Type string
			Code          int
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		t.Fatalf("error %s: %v", w.Body, err)
	}
	switch {
	case e.Detail != "" && (w.Code == 404 || w.Code == 405) || e.Detail == unreadable.message && w.Code == 400:
	case e.Type == "error" && e.Error.Message != "" && e.Error.Type != "":
	case e.Error.Message != "" && e.Error.Type != "" && e.Error.Code == w.Code:
	default:
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
}

// Python's positions against Go's verdict: what one parser refuses the other
// does, but for NaN and its kin.
func FuzzPythonJSON(f *testing.F) {
	for _, seed := range []string{``, `{`, `{"a"`, `{"a":`, `{"a":1,`, `[1,]`, `{"a" 1}`, `"\x"`, `"\u12"`, "\"\n\"", `01`, `1 2`, `[1 2]`, `-`, `1.`, `1e`, `tru`, `{"a":NaN}`, strings.Repeat("[", 2000)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		msg, at := pythonJSONError(body)
		if at < 0 || at > len(body) {
			t.Fatalf("%q: %q at %d", body, msg, at)
		}
		if json.Valid(quoteNonFinite(body)) && msg != "" {
			t.Fatalf("%q: %q at %d, but it is JSON", body, msg, at)
		}
		if msg == "" && !json.Valid(quoteNonFinite(body)) && !strings.Contains(string(body), strings.Repeat("[", depthMax/3)) && !strings.Contains(string(body), strings.Repeat(`{"`, 100)) {
			t.Fatalf("%q is no JSON, and nothing is wrong", body)
		}
	})
}
