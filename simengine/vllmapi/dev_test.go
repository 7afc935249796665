package vllmapi

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDevRoutesAreOffByDefault(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		for _, path := range []string{"/sleep", "/wake_up", "/reset_prefix_cache", "/v1/load_lora_adapter", "/v1/unload_lora_adapter"} {
			if r := b.post(path, `{}`); r.Code != 404 {
				t.Errorf("%s: %d", path, r.Code)
			}
		}
	})
}

// A sleep aborts what runs, with the finish reason in the stream; what comes
// later waits for wake_up, and finds no cache.
func TestSleepAbortsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, benchEngine, 1, func(c *Config) { c.DevMode = true })
		is := func(want string) {
			t.Helper()
			if got := b.do(t.Context(), "GET", "/is_sleeping", "").Body.String(); got != `{"is_sleeping":`+want+`}` {
				t.Errorf("it says %s, want %s", got, want)
			}
		}
		long := `"max_tokens":5000,"ignore_eos":true,"prompt":` + idPrompt(1, 64) + `}`
		answers := make(chan *recorded, 2)
		go func() { answers <- b.post(textPath, `{"stream":true,`+long) }()
		go func() { answers <- b.post(textPath, `{`+long) }()
		time.Sleep(time.Second)
		is("false")
		if r := b.post("/sleep?level=3", ``); r.Code != 400 || !strings.Contains(r.Body.String(), "query.level") {
			t.Errorf("level 3: %d %s", r.Code, r.Body)
		}
		if r := b.post("/sleep?level=1", ``); r.Body.String() != `{"status":"sleeping","level":1}` {
			t.Errorf("sleep: %s", r.Body)
		}
		for range 2 {
			if text := (<-answers).Body.String(); !strings.Contains(text, `"finish_reason":"abort"`) {
				t.Errorf("a request that ran was answered with %.400s", text)
			}
		}
		is("true")
		begin := time.Now()
		go func() {
			time.Sleep(time.Hour)
			if r := b.post("/wake_up", ``); r.Body.String() != `{"status":"awake","tags":null}` {
				t.Errorf("wake up: %s", r.Body)
			}
		}()
		v := b.post(textPath, `{"max_tokens":1,"prompt":`+idPrompt(1, 64)+`}`).whole(t)
		if took := time.Since(begin); took < time.Hour || took > time.Hour+time.Second || v.cached() != 0 {
			t.Errorf("after %v with %d cached", took, v.cached())
		}
		is("false")
		if r := b.post("/reset_prefix_cache", ``); r.Body.String() != `{"success":true}` {
			t.Errorf("reset: %s", r.Body)
		}
		if v := b.post(textPath, `{"max_tokens":1,"prompt":`+idPrompt(1, 64)+`}`).whole(t); v.cached() != 0 {
			t.Errorf("after a reset %d are cached", v.cached())
		}
		b.idle()
	})
}

func TestAdaptersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, benchEngine, 1, func(c *Config) { c.RuntimeLoRA = true })
		for _, c := range []struct {
			path, body string
			status     int
			answer     string
		}{
			{textPath, `{"model":"a","prompt":"x"}`, 404, "does not exist"},
			{"/v1/load_lora_adapter", `{"lora_name":"a","lora_path":"/a"}`, 200, "Success: LoRA adapter 'a' added successfully."},
			{"/v1/load_lora_adapter", `{"lora_name":"a","lora_path":"/a"}`, 400, "has already been loaded"},
			{"/v1/load_lora_adapter", `{"lora_name":"a","lora_path":"/b","load_inplace":true}`, 200, "Success"},
			{"/v1/load_lora_adapter", `{"lora_name":"m","lora_path":"/b"}`, 400, "conflicts with a served base model"},
			{"/v1/load_lora_adapter", `{"lora_name":"","lora_path":"/b"}`, 400, "must be provided"},
			{"/v1/load_lora_adapter", `{"lora_name":"c"}`, 400, "body.lora_path"},
			{textPath, `{"model":"a","prompt":"x","max_tokens":1}`, 200, `"model":"a"`},
			{"/v1/unload_lora_adapter", `{"lora_name":"a"}`, 200, "Success: LoRA adapter 'a' removed successfully."},
			{"/v1/unload_lora_adapter", `{"lora_name":"a"}`, 404, "cannot be found"},
			{textPath, `{"model":"a","prompt":"x"}`, 404, "does not exist"},
		} {
			if r := b.post(c.path, c.body); r.Code != c.status || !strings.Contains(r.Body.String(), c.answer) {
				t.Errorf("%s %s: %d %s", c.path, c.body, r.Code, r.Body)
			}
		}
	})
}

// The store is bounded by number and by size; the oldest go first.
func TestTheStoreForgetsTheOldest(t *testing.T) {
	s := newStore(3)
	for i := range 5 {
		s.put(fmt.Sprint(i), []turn{{content: make([]token, 100)}}, nil)
	}
	if s.get("1") != nil || s.get("2") == nil || len(s.order) != 3 || s.tokens != 303 {
		t.Errorf("%v, %d tokens", s.order, s.tokens)
	}
	s.tokensMax = 250
	s.put("2", []turn{{content: make([]token, 49)}}, nil)
	if s.get("2") != nil || s.get("4") == nil || s.tokens > 250 || len(s.byID) != len(s.order) {
		t.Errorf("%v, %d tokens", s.order, s.tokens)
	}
	s.put("huge", []turn{{content: make([]token, 251)}}, nil)
	if s.get("huge") != nil {
		t.Error("it holds more than its bound")
	}
	var none *store
	if none.get("x") != nil || none.turns("x") != nil {
		t.Error("no store remembers something")
	}
}

// Made-up arguments fit their schema, and calls come back as they were made.
func TestACallSentBackIsFoundInTheCache(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		const tools = `"tool_choice":"required","parallel_tool_calls":false,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"q":{"type":"string"},"n":{"type":"number"}}}}}]`
		first := b.post(chatPath, `{`+tools+`,"messages":[{"role":"user","content":"Go."}]}`)
		text := first.Body.String()
		from := strings.Index(text, `"tool_calls":[`)
		to := strings.Index(text, `],"reasoning"`)
		if from < 0 || to < from {
			t.Fatalf("the answer is %s", text)
		}
		v := first.whole(t)
		next := b.post(chatPath, `{`+tools+`,"messages":[{"role":"user","content":"Go."},{"role":"assistant",`+text[from:to+1]+`},{"role":"tool","tool_call_id":"x","content":"ok"}]}`).whole(t)
		if want := (v.Usage.TotalTokens - 1) / 16 * 16; next.cached() != want {
			t.Errorf("%d of %d tokens are cached, want %d", next.cached(), next.Usage.PromptTokens, want)
		}
	})
}
