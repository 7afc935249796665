package caddyllm

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logs "go.uber.org/zap/zaptest/observer"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/scrape"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// brokenPolicy is one whose decision, memory of responses and bookkeeping panic
// wherever they are asked.
func brokenPolicy(t *testing.T) (*LLMPrefix, *logs.ObservedLogs) {
	t.Helper()
	core, seen := logs.New(zapcore.DebugLevel)
	p := &LLMPrefix{logger: zap.New(core), fallback: new(reverseproxy.RandomSelection), shared: nil}
	p.settings = p.withDefaults()
	p.upstreams = &upstreams{policy: p}
	return p, seen
}

// brokenWriter is a client's connection whose header can't be had.
type brokenWriter struct{ http.ResponseWriter }

func (brokenWriter) Header() http.Header { panic("CANARY header") }

// Whatever of ours breaks, a request is answered as plain Caddy answers it, and
// the break is counted by its place.
func TestFaultsOfOursCostNoAnswer(t *testing.T) {
	const answered = `{"id":"resp_1","usage":{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":1}}}`
	var got string
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = string(body)
		_, _ = io.WriteString(w, answered)
	}))
	defer engine.Close()
	dial := engine.Listener.Addr().String()

	p, logged := brokenPolicy(t)
	p.settings.expose = "X-LLM"
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	transport := new(reverseproxy.HTTPTransport)
	if err := transport.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = transport.Cleanup() }()
	watched := &observer{transport, p}

	before := make(map[string]uint64)
	for _, where := range []string{inDecision, inPublish, inObserve} {
		before[where] = metrics.panics[where].Load()
	}
	const body = `{"model":"m","messages":[{"role":"user","content":"CANARY prompt"}]}`
	req := httptest.NewRequest(http.MethodPost, "http://"+dial+"/v1/responses", strings.NewReader(body))
	req.RequestURI = ""
	reqCtx := context.WithValue(req.Context(), caddy.ReplacerCtxKey, caddy.NewReplacer())
	req = req.WithContext(reqCtx)
	pool := reverseproxy.UpstreamPool{{Dial: dial, Host: new(reverseproxy.Host)}}

	u := p.Select(pool, req, brokenWriter{})
	if u == nil || u.Dial != dial {
		t.Fatalf("Select = %v, want the only upstream", u)
	}
	// The fallback policy's choices aren't followed; those of the decision are.
	f := req.Context().Value(flightKey{p}).(*flight)
	if f.why != whyPanic {
		t.Errorf("the request goes to the fallback for %q, want %q", f.why, whyPanic)
	}
	f.current().choice = choice{prompt: true, stream: true, Choice: route.Choice{Ticket: 1}}
	res, err := watched.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil || string(text) != answered || got != body {
		t.Errorf("answer %q, %v to body %q, want both untouched", text, err, got)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	f.land()
	for where, n := range before {
		if metrics.panics[where].Load() <= n {
			t.Errorf("no fault is counted in %q", where)
		}
	}
	if logged.Len() == 0 {
		t.Error("nothing is logged")
	}
	for _, entry := range logged.All() {
		stack, _ := entry.ContextMap()["stack"].(string)
		if strings.Contains(entry.Message+stack, "CANARY") || !strings.Contains(stack, "caddyllm") {
			t.Errorf("logged %q with stack %.300q, want where it was and no value", entry.Message, stack)
		}
	}
}

// A fault in taking in a scrape neither ends the poller nor keeps the lock.
func TestAFaultInAScrapeIsCounted(t *testing.T) {
	before := metrics.panics[inScrape].Load()
	s := &state{} // without a router
	for range 2 {
		s.Scraped(scrape.Result{Upstream: "u:1", Reason: scrape.ReasonRefused})
	}
	if got := metrics.panics[inScrape].Load() - before; got != 2 {
		t.Errorf("%v faults are counted, want 2", got)
	}
}
