package vllmapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A stream as it comes over time: the header at once, the role with the first
// token, then one event for each step.
func TestEventsComeStepByStep(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		r := b.post(textPath, `{"prompt":`+idPrompt(1, 1600)+`,"max_tokens":3,"stream":true}`)
		var times []time.Duration
		for _, f := range r.flushes {
			times = append(times, f.at)
		}
		ms := time.Millisecond
		// 10 ms and 1 ms for each 16 tokens, then 10 ms for each step; [DONE]
		// comes with the last token.
		if want := []time.Duration{0, 110 * ms, 120 * ms, 130 * ms}; fmt.Sprint(times) != fmt.Sprint(want) {
			t.Errorf("flushed at %v, want %v", times, want)
		}
		for i, f := range r.flushes[1:4] {
			if n := strings.Count(f.text, `"choices"`); n != 1 {
				t.Errorf("step %d sends %d events, want 1", i, n)
			}
		}

		r = b.post(chatPath, `{"messages":[{"role":"user","content":"x"}],"max_tokens":2,"stream":true}`)
		if first := r.flushes[1].text; strings.Count(first, "data: ") != 2 || !strings.Contains(first, `"role":"assistant"`) {
			t.Errorf("the first step of a chat sends %q", first)
		}
		b.idle()
	})
}

// The frames of a chat, byte for byte but for id and text.
func TestFramesOfAChat(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		for _, c := range []struct{ name, options, want string }{
			{"plain", ``, `
{"id":"chatcmpl-r","object":"chat.completion.chunk","created":946684800,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}
{"id":"chatcmpl-r","object":"chat.completion.chunk","created":946684800,"model":"m","choices":[{"index":0,"delta":{"content":"AAAA"},"logprobs":null,"finish_reason":null,"token_ids":null}]}
{"id":"chatcmpl-r","object":"chat.completion.chunk","created":946684800,"model":"m","choices":[{"index":0,"delta":{"content":"BBBB"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}],"system_fingerprint":"vllm-0.32.0-83a2b2e8"}
[DONE]
`},
			{"usage", `"stream_options":{"include_usage":true},`, `
{"id":"chatcmpl-r","object":"chat.completion.chunk","created":946684800,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}
{"id":"chatcmpl-r","object":"chat.completion.chunk","created":946684800,"model":"m","choices":[{"index":0,"delta":{"content":"AAAA"},"logprobs":null,"finish_reason":null,"token_ids":null}]}
{"id":"chatcmpl-r","object":"chat.completion.chunk","created":946684800,"model":"m","choices":[{"index":0,"delta":{"content":"BBBB"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}]}
{"id":"chatcmpl-r","object":"chat.completion.chunk","created":946684800,"model":"m","choices":[],"usage":{"prompt_tokens":11,"total_tokens":13,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0,"created_cache_tokens":0}},"system_fingerprint":"vllm-0.32.0-83a2b2e8"}
[DONE]
`},
			{"continuous usage", `"stream_options":{"include_usage":true,"continuous_usage_stats":true},`, `
{"id":"chatcmpl-r","object":"chat.completion.chunk","created":946684800,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":11,"total_tokens":11,"completion_tokens":0,"completion_tokens_details":null},"prompt_token_ids":null,"prompt_text":null}
{"id":"chatcmpl-r","object":"chat.completion.chunk","created":946684800,"model":"m","choices":[{"index":0,"delta":{"content":"AAAA"},"logprobs":null,"finish_reason":null,"token_ids":null}],"usage":{"prompt_tokens":11,"total_tokens":12,"completion_tokens":1,"completion_tokens_details":null}}
{"id":"chatcmpl-r","object":"chat.completion.chunk","created":946684800,"model":"m","choices":[{"index":0,"delta":{"content":"BBBB"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}],"usage":{"prompt_tokens":11,"total_tokens":13,"completion_tokens":2,"completion_tokens_details":null}}
{"id":"chatcmpl-r","object":"chat.completion.chunk","created":946684800,"model":"m","choices":[],"usage":{"prompt_tokens":11,"total_tokens":13,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0,"created_cache_tokens":0}},"system_fingerprint":"vllm-0.32.0-83a2b2e8"}
[DONE]
`},
		} {
			body := `{"model":"m","stream":true,` + c.options + `"max_tokens":2,"messages":[{"role":"user","content":"x"}]}`
			r := b.do(t.Context(), http.MethodPost, chatPath, body, "X-Request-Id", "r")
			got := strings.ReplaceAll(r.Body.String(), "\n\n", "\n")
			got = "\n" + strings.ReplaceAll(got, "data: ", "")
			text := said(r.events(t), 0)
			want := strings.ReplaceAll(strings.ReplaceAll(c.want, "AAAA", text[:4]), "BBBB", text[4:])
			if got != want {
				t.Errorf("%s: got %s\nwant %s", c.name, got, want)
			}
		}
	})
}

func TestIDsAreTheClientsOrUnique(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, benchEngine, 1)
		other := newBench(t, benchEngine, 1, func(c *Config) { c.Instance = "other" })
		seen := map[string]bool{}
		for range 20 {
			for _, s := range []*bench{b, other} {
				id := s.post(textPath, `{"prompt":"x","max_tokens":1}`).whole(t).ID
				if seen[id] || !strings.HasPrefix(id, "cmpl-") || len(id) != len("cmpl-")+32 {
					t.Errorf("id %q", id)
				}
				seen[id] = true
			}
		}
		r := b.do(t.Context(), http.MethodPost, chatPath, `{"messages":[{"role":"user","content":"x"}],"max_tokens":1}`, "X-Request-Id", `a"b`)
		if id := r.whole(t).ID; id != `chatcmpl-a"b` {
			t.Errorf("id %q", id)
		}
	})
}

// A client may leave in the queue, while its prompt is computed, or while it
// reads; streaming or not. Nothing of it is left a step later.
func TestLeavingAtAnyTimeFreesTheEngine(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration
	}{{"as it comes", 0}, {"queued", 25 * time.Millisecond}, {"in prefill", 60 * time.Millisecond}, {"reading", 600 * time.Millisecond}} {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, stream %v", c.name, stream), func(t *testing.T) {
				engine := benchEngine
				engine.MaxNumSeqs = 1
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, engine, 1)
					// The only slot is taken for 50 ms.
					go b.post(textPath, `{"prompt":"x","max_tokens":5,"ignore_eos":true}`)
					synctest.Wait()
					ctx, leave := context.WithCancel(t.Context())
					time.AfterFunc(c.after, leave)
					r := b.do(ctx, http.MethodPost, textPath, fmt.Sprintf(`{"prompt":%s,"max_tokens":100,"ignore_eos":true,"stream":%v}`, idPrompt(1, 4000), stream))
					if took := time.Since(r.begin); took != c.after || r.panicv != nil {
						t.Errorf("the handler ended after %v, want %v (%v)", took, c.after, r.panicv)
					}
					if !stream && r.Body.Len() != 0 {
						t.Errorf("it answered %q", r.Body)
					}
					b.idle()
					aborted := 0
					for _, e := range b.journal() {
						if e.Aborted {
							aborted++
						}
					}
					if aborted != 1 {
						t.Errorf("the journal knows of %d that left, want 1", aborted)
					}
				})
			})
		}
	}
}

func TestAThousandClientsThatLeaveInMidStream(t *testing.T) {
	engine := benchEngine
	engine.MaxNumSeqs = 300
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, engine, 1)
		for i := range 1000 {
			ctx, leave := context.WithTimeout(t.Context(), time.Second+time.Duration(i)*time.Microsecond)
			defer leave()
			go b.do(ctx, http.MethodPost, chatPath, fmt.Sprintf(`{"stream":true,"max_tokens":5000,"ignore_eos":true,"messages":[{"role":"user","content":"%d"}]}`, i))
		}
		time.Sleep(900 * time.Millisecond)
		if s := b.driver.Stats(); s.Running != 300 || s.Waiting != 700 || s.KVUsage == 0 {
			t.Errorf("%d running and %d waiting with %v of the blocks, want 300 and 700", s.Running, s.Waiting, s.KVUsage)
		}
		time.Sleep(150 * time.Millisecond)
		if s := b.driver.Stats(); s.Running != 0 || s.Waiting != 0 || s.KVUsage != 0 {
			t.Errorf("%d running and %d waiting with %v of the blocks after all left", s.Running, s.Waiting, s.KVUsage)
		}
		if n := len(b.journal()); n != 1000 {
			t.Errorf("the journal has %d entries, want 1000", n)
		}
		b.idle()
	})
}
