package caddyllm

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"
	logs "go.uber.org/zap/zaptest/observer"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// FC-56: a session's key may be of any size and there may be any number of them:
// it is followed, what is kept of them is bounded, and none is told anywhere. That
// it never wins over health and load is the decision's test of that name.
func TestFC56KeysOfAnySizeAndNumber(t *testing.T) {
	const name = "X-Session-Id"
	l := newLookout(t, LLMPrefix{SessionHeader: name}, "a:1", "b:1", "c:1", "d:1")
	core, logged := logs.New(zap.DebugLevel)
	l.p.logger = zap.New(core)
	requests := 0
	served := func(key string) string {
		t.Helper()
		requests++
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		body := fmt.Sprintf(`{"messages":[{"role":"user","content":"%s"}]}`, strings.Repeat(fmt.Sprint("unlike ", requests, " "), 60))
		req := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(body)).WithContext(ctx)
		if key != "" {
			req.Header.Set(name, key)
		}
		up := l.p.Select(l.pool, req, nil)
		if up == nil {
			t.Fatal("no upstream is found")
		}
		f := req.Context().Value(flightKey{l.p}).(*flight)
		f.current().finish(route.Completed, nil)
		f.done()
		return up.Dial
	}
	// Two clients share a key, and one's is of 1 MB.
	for _, key := range []string{canary, strings.Repeat(canary, 1<<20/len(canary))} {
		home := served(key)
		for range 20 {
			if got := served(key); got != home {
				t.Errorf("a key of %d bytes began on %s, and goes to %s", len(key), home, got)
			}
		}
	}
	without := make(map[string]int)
	for range 80 {
		without[served("")]++
	}
	if len(without) != 4 {
		t.Errorf("prompts without a key go %v, want them everywhere", without)
	}

	r := httptest.NewRequest("POST", "/v1/chat/completions", nil)
	h := &l.p.shared.sessions
	for i := range 1_000_000 {
		r.Header[name] = []string{fmt.Sprint(canary, i)}
		f := flight{policy: l.p}
		f.classify(r)
		if f.session == 0 {
			t.Fatal("a key is not read")
		}
		h.put(f.session, "a:1")
	}
	if n := len(h.young) + len(h.old); n > 2*generation {
		t.Errorf("%d of 1,000,000 keys are kept, want at most %d", n, 2*generation)
	}
	served(canary)

	_, state, _ := ask(t, "GET", "/llm_prefix/state", "")
	told := state + page(t, gather(t, metrics))
	for _, e := range logged.All() {
		told += fmt.Sprint(e.Message, e.ContextMap())
	}
	if strings.Contains(told, canary) {
		t.Error("a key is told")
	}
}

func TestHomesForgetWhatIsNotAskedForAndStayBounded(t *testing.T) {
	var h homes
	h.put(0, "none")
	if got := h.of(0); got != "" {
		t.Errorf("the key 0 has home %q", got)
	}
	h.put(1, "a")
	h.put(2, "b")
	for i := range uint64(5 * generation) {
		h.put(1000+i, "c")
		if i%1000 == 0 && h.of(1) != "a" {
			t.Fatalf("key 1 was asked for and is forgotten after %d others", i)
		}
	}
	if got := h.of(2); got != "" {
		t.Errorf("key 2 still has home %q", got)
	}
	if n := len(h.young) + len(h.old); n > 2*generation {
		t.Errorf("%d entries, want at most %d", n, 2*generation)
	}
}

func TestResponseInPath(t *testing.T) {
	want := xxhash.Sum64String("resp_1")
	for path, found := range map[string]bool{
		"/v1/responses/resp_1": true, "/llm/v1/responses/resp_1/cancel": true, "/v1/responses/resp_1/input_items": true,
		"/v1/responses": false, "/v1/responses/": false, "/responses/resp_2": false, "/v1/models": false,
	} {
		if got := responseInPath(path) == want; got != found {
			t.Errorf("responseInPath(%s) = that of resp_1: %v, want %v", path, got, found)
		}
	}
}

func TestTheIDOfAResponseIsFoundHoweverItArrives(t *testing.T) {
	for answer, id := range map[string]string{
		`{"id":"resp_1","object":"response","output":[{"id":"msg_2"}]}`: "resp_1",
		`{"object":"response", "id": "resp_2"}`:                         "resp_2",
		"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_3\",\"status\":\"in_progress\"}}\n\nevent: x\n\n": "resp_3",
	} {
		for _, step := range []int{1, 7, 1000} {
			var s idSeeker
			var got uint64
			for rest := answer; len(rest) > 0; {
				n := min(step, len(rest))
				if h := s.write([]byte(rest[:n])); h != 0 {
					got = h
				}
				rest = rest[n:]
			}
			if got != xxhash.Sum64String(id) {
				t.Errorf("%q, %d bytes at a time: not the id %s", answer, step, id)
			}
		}
	}
	var s idSeeker
	for range 100 {
		if h := s.write(make([]byte, 100)); h != 0 {
			t.Fatal("an id in zeros")
		}
	}
	if !s.done || cap(s.head) > 2*idHead {
		t.Errorf("looks on after %d bytes", cap(s.head))
	}
}
