package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestAStreamIsMeasuredAndItsConnectionUsedAgain(t *testing.T) {
	s := newServer(t, events(role, hello, world, usage, "[DONE]"))
	records := replayed(t, twoTurns, Options{URL: s.URL})
	if len(records) != 2 {
		t.Fatalf("Run made %d records, want 2", len(records))
	}
	for i, r := range records {
		if r.Class != "" || r.Conversation != "c" || r.Turn != i {
			t.Errorf("record %d = %+v, want a success of turn %d of c", i, r, i)
		}
		if r.PromptTokens != 40 || r.CompletionTokens != 2 || r.CachedTokens != 32 || !r.CachedKnown {
			t.Errorf("record %d has the usage %d, %d, %d (%t), want 40, 2, 32", i, r.PromptTokens, r.CompletionTokens, r.CachedTokens, r.CachedKnown)
		}
		if r.TTFT <= 0 || r.E2E < r.TTFT || r.TPOT() < 0 {
			t.Errorf("record %d has TTFT %v, e2e %v, TPOT %v", i, r.TTFT, r.E2E, r.TPOT())
		}
	}
	s.mu.Lock()
	conns := len(s.conns)
	s.mu.Unlock()
	if conns != 1 {
		t.Errorf("two turns used %d connections, want 1: one that is closed at [DONE] looks like a client that left", conns)
	}
	var request struct {
		Model     string
		Stream    bool
		MaxTokens int `json:"max_tokens"`
	}
	if err := json.Unmarshal([]byte(s.sent()[0]), &request); err != nil {
		t.Fatal(err)
	}
	if request.Model != "small" || !request.Stream || request.MaxTokens != 2 || !strings.Contains(s.sent()[0], `"include_usage":true`) {
		t.Errorf("request = %s, want model small, a stream with usage, and the recorded reply's 2 tokens", s.sent()[0])
	}
}

// vLLM tells of cached tokens only when started with a flag for it.
func TestUnknownCachedTokensAreNotZero(t *testing.T) {
	s := newServer(t, events(role, hello, noHits, "[DONE]"))
	records := replayed(t, twoTurns, Options{URL: s.URL})
	if records[0].PromptTokens != 40 || records[0].CachedKnown {
		t.Errorf("record = %+v, want 40 prompt tokens and nothing known of cached ones", records[0])
	}
	if r := Summarize("x", records, time.Second); r.CachedTokenRatio != nil {
		t.Errorf("cached-token ratio = %s, want unknown", Ratio(r.CachedTokenRatio))
	}
}

func TestAConversationGoesOnWithTheReplyAskedFor(t *testing.T) {
	for _, c := range []struct {
		server bool
		want   string
	}{
		{false, "system:Be kind. user:One? assistant:recorded user:Two?"},
		{true, "system:Be kind. user:One? assistant:Hello there user:Two?"},
	} {
		s := newServer(t, events(role, hello, world, usage, "[DONE]"))
		replayed(t, twoTurns, Options{URL: s.URL + "/v1/", ServerReplies: c.server})
		if got := contents(t, s.sent()[1]); got != c.want {
			t.Errorf("with server replies %t the second turn sends %q, want %q", c.server, got, c.want)
		}
	}
}

func TestRepliesThatCallToolsAreTheRecordedOnes(t *testing.T) {
	s := newServer(t, events(role, hello, world, usage, "[DONE]"))
	replayed(t, `{"tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"Book."},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"r"}]}`, Options{URL: s.URL, ServerReplies: true})
	for _, want := range []string{`"tool_calls":[{"id":"c1"`, `"tools":[{"type":"function"`} {
		if !strings.Contains(s.sent()[1], want) {
			t.Errorf("the second turn sends %s, want %s in it", s.sent()[1], want)
		}
	}
}

func TestAWholePromptForgetsWhatWasSaid(t *testing.T) {
	s := newServer(t, events(role, hello, usage, "[DONE]"))
	replayed(t, `{"session":"s","input":"fix it","output":"ls"} {"session":"s","input":"fix it now","output":"cat"}`, Options{URL: s.URL})
	if got, want := contents(t, s.sent()[1]), "user:fix it now"; got != want {
		t.Errorf("the second turn sends %q, want %q", got, want)
	}
}

func TestWholeAnswersHaveNoTTFT(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"}}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`)
	})
	records := replayed(t, twoTurns, Options{URL: s.URL, NoStream: true})
	if r := records[0]; r.Class != "" || r.TTFT != 0 || r.E2E <= 0 || r.PromptTokens != 9 || r.CachedKnown {
		t.Errorf("record = %+v, want a success with e2e alone and unknown cached tokens", r)
	}
	if strings.Contains(s.sent()[0], "stream") {
		t.Errorf("request = %s, want no stream", s.sent()[0])
	}
}

func TestEachFailureHasItsClass(t *testing.T) {
	long := strings.Repeat("é", 4000)
	for _, c := range []struct {
		name          string
		answer        http.HandlerFunc
		class, detail string
	}{
		{"stream without [DONE]", events(role, hello, world, usage), ClassStreamWithoutDone, "ended after 4 events"},
		{"empty stream", events(), ClassStreamWithoutDone, "ended after 0 events"},
		{"stream that breaks", func(w http.ResponseWriter, r *http.Request) {
			events(role, hello)(w, r)
			panic(http.ErrAbortHandler)
		}, ClassStreamWithoutDone, "broke after 2 events: unexpected EOF"},
		{"error in a stream", events(role, hello, `{"error":{"message":"CUDA\nerror","type":"InternalServerError","code":500}}`, "[DONE]"), ClassErrorInStream, "CUDA error"},
		{"error as a stream's last line", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `data: {"error":{"message":"out of memory"}}`)
		}, ClassErrorInStream, "out of memory"},
		{"503 with text", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no upstreams available", http.StatusServiceUnavailable)
		}, "status_503", "no upstreams available"},
		{"502 without text", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "status_502", ""},
		{"400 in vLLM's form", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":{"message":"maximum context length is 8192 tokens","type":"BadRequestError","param":null,"code":400}}`)
		}, "status_400", "maximum context length is 8192 tokens"},
		{"a long page of an error", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, long)
		}, "status_500", long[:maxDetail-len("…")-1] + "…"},
		{"204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "status_204", ""},
		{"connection lost", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ClassConnectionLost, "EOF"},
		{"an event that is no JSON", events("<html>", "[DONE]"), ClassBadResponse, "invalid character '<' looking for beginning of value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, c.answer)
			records := replayed(t, twoTurns, Options{URL: s.URL})
			if len(records) != 2 {
				t.Fatalf("Run made %d records, want 2: a recorded reply lets the conversation go on", len(records))
			}
			if got := records[0]; got.Class != c.class || got.Detail != c.detail {
				t.Errorf("record has class %q, %q, want %q, %q", got.Class, got.Detail, c.class, c.detail)
			}
			if n := len(s.sent()); n != 2 {
				t.Errorf("the server saw %d requests, want 2: retries would hide failures", n)
			}
		})
	}
}

func TestBadWholeAnswersAreFailures(t *testing.T) {
	for body, class := range map[string]string{
		`{"error":{"message":"x"}}`: ClassBadResponse,
		`<html>`:                    ClassBadResponse,
	} {
		s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, body)
		})
		if got := replayed(t, twoTurns, Options{URL: s.URL, NoStream: true})[0].Class; got != class {
			t.Errorf("the answer %s has class %q, want %q", body, got, class)
		}
	}
}

func TestARefusedConnectionAndATimeoutAreToldApart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := replayed(t, twoTurns, Options{URL: "http://" + closed})[0]; got.Class != ClassConnect || !strings.Contains(got.Detail, "refused") {
		t.Errorf("with nobody there the record is %q, %q, want %q, refused", got.Class, got.Detail, ClassConnect)
	}

	s := newServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if got := replayed(t, twoTurns, Options{URL: s.URL, Timeout: 30 * time.Millisecond})[0]; got.Class != ClassTimeout {
		t.Errorf("with a server that hangs the record is %q, want %q", got.Class, ClassTimeout)
	}
}

func TestWithoutAReplyAConversationEnds(t *testing.T) {
	s := newServer(t, events(role, hello))
	records := replayed(t, `{"turns":["One?","Two?","Three?"]}`, Options{URL: s.URL})
	if len(records) != 1 {
		t.Errorf("Run made %d records, want 1: nothing was recorded to go on with", len(records))
	}
}

func TestAnInterruptedReplayKeepsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var answered atomic.Int32
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if answered.Add(1) == 2 {
			cancel()
			<-r.Context().Done()
			return
		}
		events(role, hello, usage, "[DONE]")(w, r)
	})
	records, err := Run(ctx, conversations(t, twoTurns+twoTurns), Options{URL: s.URL, Model: "small", Concurrency: 1})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, want %v", err, context.Canceled)
	}
	if len(records) != 1 || records[0].Class != "" {
		t.Errorf("Run kept %+v, want the first request only", records)
	}
}

func TestConversationsRunAtOnceAndTheirTurnsInOrder(t *testing.T) {
	const n = 4
	arrived := make(chan struct{}, 2*n)
	release := make(chan struct{})
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		events(role, hello, usage, "[DONE]")(w, r)
	})
	done := make(chan []Record)
	go func() { done <- replayed(t, strings.Repeat(twoTurns, 6), Options{URL: s.URL, Concurrency: n}) }()
	for range n {
		<-arrived
	}
	if extra := len(arrived); extra != 0 {
		t.Errorf("%d requests beyond the %d allowed at once", extra, n)
	}
	close(release)
	turns := make(map[string]int)
	for _, r := range <-done {
		if r.Turn != turns[r.Conversation] {
			t.Errorf("turn %d of %s came when %d was due", r.Turn, r.Conversation, turns[r.Conversation])
		}
		turns[r.Conversation]++
	}
}

func TestRecordedTimesAreScaled(t *testing.T) {
	s := newServer(t, events(role, hello, usage, "[DONE]"))
	text := `{"id":"late","start_s":20,"gaps_s":[0,20],"messages":[{"role":"user","content":"1"},{"role":"assistant","content":"a"},{"role":"user","content":"2"}]}
		{"id":"early","messages":[{"role":"user","content":"1"}]}`
	begin := time.Now()
	// One at a time: of two that are under way at once the later may be answered
	// first.
	records := replayed(t, text, Options{URL: s.URL, Speed: 200, Concurrency: 1})
	if took := time.Since(begin); took < 200*time.Millisecond {
		t.Errorf("40 recorded seconds at speed 200 took %v, want at least 200ms", took)
	}
	if records[0].Conversation != "early" {
		t.Errorf("%q went first, want the one that started first", records[0].Conversation)
	}
}

func TestModelsAreThoseOfTheServer(t *testing.T) {
	s := newServer(t, events())
	got, err := Models(t.Context(), Options{URL: s.URL})
	if err != nil || strings.Join(got, " ") != "small large" {
		t.Errorf("Models = %v, %v, want small and large", got, err)
	}
	s.Close()
	if _, err := Models(t.Context(), Options{URL: s.URL}); err == nil || !strings.Contains(err.Error(), ClassConnect) {
		t.Errorf("Models of a closed server = %v, want %s", err, ClassConnect)
	}
}

func TestKeysOfTheEnvironmentStayThere(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-for-someone-else")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	var header atomic.Value
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		header.Store(r.Header.Get("Authorization"))
		events(role, hello, usage, "[DONE]")(w, r)
	})
	replayed(t, `{"turns":["One?"]}`, Options{URL: s.URL})
	if header.Load() != "" {
		t.Error("a request carried the key of the environment")
	}
	replayed(t, `{"turns":["One?"]}`, Options{URL: s.URL, APIKey: "given"})
	if got := header.Load(); got != "Bearer given" {
		t.Errorf("Authorization = %q, want the key of the options", got)
	}
}

func TestOptionsOutOfBoundsAreErrors(t *testing.T) {
	for _, o := range []Options{
		{}, {URL: "127.0.0.1:80"}, {URL: "ftp://x"}, {URL: "http://x", Concurrency: -1}, {URL: "http://x", Concurrency: maxConcurrency + 1},
		{URL: "http://x", Speed: -1}, {URL: "http://x", MaxTokens: -1}, {URL: "http://x", Timeout: -1},
	} {
		if err := o.Validate(); err == nil {
			t.Errorf("Validate(%+v) = nil, want an error", o)
		}
	}
	if _, err := Run(t.Context(), nil, Options{URL: "http://x"}); err == nil {
		t.Error("Run without a model = nil, want an error")
	}
}
