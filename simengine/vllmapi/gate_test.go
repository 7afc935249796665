package vllmapi

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf16"
)

// With keys, who asks for anything under /v1 must give one; probes and metrics
// stay open, as vLLM's --api-key has it.
func TestKeysAreAskedForUnderV1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, benchEngine, 1, func(c *Config) { c.APIKeys = []string{"one", "two"} })
		for authorization, want := range map[string]int{
			"": 401, "Bearer": 401, "Bearer three": 401, "Basic one": 401, "one": 401, "Bearer one": 200, "bearer two": 200,
		} {
			r := b.do(t.Context(), "GET", "/v1/models", "", "Authorization", authorization)
			if r.Code != want {
				t.Errorf("%q: %d, want %d", authorization, r.Code, want)
			}
			if r.Code == 401 && r.Body.String() != `{"error":"Unauthorized"}` {
				t.Errorf("%q: %s", authorization, r.Body)
			}
		}
		for path, want := range map[string]int{"/health": 200, "/version": 200, "/load": 200, "/v1/none": 401, "/none": 404} {
			if r := b.do(t.Context(), "GET", path, ""); r.Code != want {
				t.Errorf("%s without a key: %d, want %d", path, r.Code, want)
			}
		}
	})
}

// Python's parser takes JSON in UTF-16 and UTF-32, with a mark or without.
func TestBodiesInWideEncodings(t *testing.T) {
	const body = `{"messages":[{"role":"user","content":"caf\u00e9 \ud83d\ude00 é"}]}`
	wide := func(order binary.AppendByteOrder, size int) []byte {
		var b []byte
		if size == 2 {
			for _, u := range utf16.Encode([]rune(body)) {
				b = order.AppendUint16(b, u)
			}
			return b
		}
		for _, r := range body {
			b = order.AppendUint32(b, uint32(r))
		}
		return b
	}
	want, _ := readBody([]byte(body), chatAPI)
	for name, c := range map[string]struct{ mark, text []byte }{
		"UTF-16LE":               {nil, wide(binary.LittleEndian, 2)},
		"UTF-16BE":               {nil, wide(binary.BigEndian, 2)},
		"UTF-32LE":               {nil, wide(binary.LittleEndian, 4)},
		"UTF-32BE":               {nil, wide(binary.BigEndian, 4)},
		"UTF-16LE with a mark":   {[]byte("\xff\xfe"), wide(binary.LittleEndian, 2)},
		"UTF-16BE with a mark":   {[]byte("\xfe\xff"), wide(binary.BigEndian, 2)},
		"UTF-32LE with a mark":   {[]byte("\xff\xfe\x00\x00"), wide(binary.LittleEndian, 4)},
		"UTF-32BE with a mark":   {[]byte("\x00\x00\xfe\xff"), wide(binary.BigEndian, 4)},
		"UTF-8 with a mark":      {[]byte("\xef\xbb\xbf"), []byte(body)},
		"UTF-8 without anything": {nil, []byte(body)},
	} {
		g, err := readBody(append(bytes.Clone(c.mark), c.text...), chatAPI)
		if err != nil || len(g.prompts) != 1 || detokenize(g.prompts[0]) != detokenize(want.prompts[0]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, torn := range map[string]string{"UTF-16": "\xff\xfea", "UTF-32": "\xff\xfe\x00\x00abc", "beyond Unicode": "\x00\x00\xfe\xff\x00\x11\x00\x00"} {
		if _, err := readBody([]byte(torn), chatAPI); err != unreadable {
			t.Errorf("%s torn: %v", name, err)
		}
	}
}

// A pause holds what comes, and loses the cache unless the client or the mode says
// otherwise. The metrics say awake.
func TestPauseHoldsRequestsUntilResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, benchEngine, 1, func(c *Config) { c.DevMode = true })
		ask := `{"max_tokens":1,"prompt":` + idPrompt(1, 64) + `}`
		b.post(textPath, ask).whole(t)
		for query, cached := range map[string]int{"": 0, "?mode=keep": 48, "?clear_cache=false": 48, "?mode=wait&clear_cache=0": 48} {
			b.post(textPath, ask).whole(t)
			if r := b.post("/pause"+query, ""); r.Body.String() != `{"status":"paused"}` {
				t.Fatalf("pause%s: %s", query, r.Body)
			}
			if r := b.do(t.Context(), "GET", "/is_paused", ""); r.Body.String() != `{"is_paused":true}` {
				t.Errorf("pause%s: %s", query, r.Body)
			}
			go func() {
				time.Sleep(time.Hour)
				if r := b.post("/resume", ""); r.Body.String() != `{"status":"resumed"}` {
					t.Errorf("resume: %s", r.Body)
				}
			}()
			begin := time.Now()
			v := b.post(textPath, ask).whole(t)
			if took := time.Since(begin); took < time.Hour || v.cached() != cached {
				t.Errorf("after pause%s: %v, %d cached, want an hour and %d", query, took, v.cached(), cached)
			}
		}
		for query, loc := range map[string]string{"?mode=zz": "query.mode", "?clear_cache=zz": "query.clear_cache"} {
			if r := b.post("/pause"+query, ""); r.Code != 400 || !strings.Contains(r.Body.String(), loc) {
				t.Errorf("pause%s: %d %s", query, r.Code, r.Body)
			}
		}
		if r := b.post("/reset_prefix_cache?reset_running_requests=zz", ""); r.Code != 400 {
			t.Errorf("a flag that is none: %d %s", r.Code, r.Body)
		}
	})
}

// Log probabilities of a prompt named its tokens by numbers that no client knew,
// beyond 32 bits; they have the ids that /tokenize gives.
func TestPromptLogprobsNameTokensByTheirIDs(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		r := b.post(textPath, `{"prompt":"Where is it?","max_tokens":1,"prompt_logprobs":0,"return_token_ids":true}`)
		var v struct {
			Choices []struct {
				PromptTokenIDs []uint64         `json:"prompt_token_ids"`
				PromptLogprobs []map[uint64]any `json:"prompt_logprobs"`
			}
		}
		if err := json.Unmarshal(r.Body.Bytes(), &v); err != nil || len(v.Choices) != 1 {
			t.Fatalf("%v: %s", err, r.Body)
		}
		for i, id := range v.Choices[0].PromptTokenIDs {
			if _, ok := v.Choices[0].PromptLogprobs[i][id]; i > 0 && !ok || id >= 1<<32 {
				t.Errorf("token %d is %d, and has %v", i, id, v.Choices[0].PromptLogprobs[i])
			}
		}
	})
}
