package caddyllm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/enginemetrics"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/scrape"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// canary stands in every prompt of these tests, and must be in no answer.
const canary = "xylophone"

// lookout is a policy as a proxy would have it, for tests of what it tells.
type lookout struct {
	t    *testing.T
	p    *LLMPrefix
	pool reverseproxy.UpstreamPool
}

// newLookout makes a policy with a state of its own, until the test ends.
func newLookout(t *testing.T, options LLMPrefix, dials ...string) *lookout {
	t.Helper()
	p := &options
	p.settings = p.withDefaults()
	if err := p.settings.sow(p.Secret); err != nil {
		t.Fatal(err)
	}
	shared, err := loadState(p.settings)
	if err != nil {
		t.Fatal(err)
	}
	pool := offer(dials...)
	p.shared, p.loaded, p.logger = shared, true, zap.NewNop()
	p.fallback = new(reverseproxy.FirstSelection)
	p.upstreams = &upstreams{policy: p, static: dials, proxy: &reverseproxy.Handler{Upstreams: pool}, scrapes: new(scrapeTransport)}
	p.upstreams.begun.Store(true)
	shared.users.join(p.upstreams)
	t.Cleanup(func() {
		if err := p.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	return &lookout{t: t, p: p, pool: pool}
}

// chatBody is a prompt of so many words after a beginning.
func chatBody(beginning string, words int) string {
	return fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":"%s"}]}`,
		beginning+strings.Repeat(" "+canary, words))
}

// answered is a request on its way.
type answered struct {
	l    *lookout
	body io.ReadCloser
	up   string
	stop context.CancelFunc
}

// send makes a choice and lets the answer begin.
func (l *lookout) send(method, path, body string) *answered {
	l.t.Helper()
	ctx, cancel := context.WithCancel(l.t.Context())
	req := httptest.NewRequest(method, path, strings.NewReader(body)).WithContext(ctx)
	up := l.p.Select(l.pool, req, nil)
	if up == nil {
		l.t.Fatalf("%s %s finds no upstream", method, path)
	}
	f := req.Context().Value(flightKey{l.p}).(*flight)
	return &answered{l: l, up: up.Dial, stop: cancel, body: newObservedBody(&http.Response{
		Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body:   io.NopCloser(strings.NewReader("")),
	}, f.current(), req)}
}

// finish lets the answer come after a while, with the tokens that it tells.
func (a *answered) finish(first, rest time.Duration, usage string) {
	a.l.t.Helper()
	b := a.body.(*observedBody)
	for i, chunk := range []string{"data: {\"choices\":[]}\n\n", "data: {\"choices\":[],\"usage\":" + usage + "}\n\n"} {
		time.Sleep([]time.Duration{first, rest}[i])
		b.ReadCloser = io.NopCloser(strings.NewReader(chunk))
		if _, err := b.Read(make([]byte, 4096)); err != nil {
			a.l.t.Fatal(err)
		}
	}
	b.ReadCloser = io.NopCloser(strings.NewReader(""))
	if _, err := io.ReadAll(b); err != nil {
		a.l.t.Fatal(err)
	}
	a.stop()
	synctest.Wait()
}

// page tells the state of an engine's queue.
func (l *lookout) page(dial string, load route.Load) {
	l.p.shared.Scraped(scrape.Result{Upstream: dial, Page: &enginemetrics.Page{Engine: "vllm", Load: load}})
}

func idlePage() route.Load {
	return route.Load{Waiting: route.Known(0), Running: route.Known(1), KVUsage: route.Known(0.25), CapacityTokens: route.Known(100_000)}
}

var (
	predictions = regexp.MustCompile(`("(?:predicted_\w+_seconds|prefill_tokens_per_second|cache_capacity_blocks|(?:queue|prefill|stall|copy|memory|cost)_seconds)"): [-\d.e]+`)

	numbers = regexp.MustCompile(`\[[\s\d.,nul]+\]`)
	white   = regexp.MustCompile(`\s+`)
)

// goldenJSON compares an answer with a file, indented.
func goldenJSON(t *testing.T, name string, got []byte) {
	t.Helper()
	var text bytes.Buffer
	if err := json.Indent(&text, bytes.TrimSpace(got), "", "  "); err != nil {
		t.Fatalf("%s: %v in %s", name, err, got)
	}
	// What the decision predicts is its own tests' matter.
	text = *bytes.NewBuffer(predictions.ReplaceAll(text.Bytes(), []byte(`$1: 7`)))
	for _, long := range numbers.FindAll(text.Bytes(), -1) { // one line for each series
		text = *bytes.NewBuffer(bytes.ReplaceAll(text.Bytes(), long, white.ReplaceAll(long, nil)))
	}
	file := filepath.Join("testdata", "status", name)
	if *update {
		if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text.Bytes(), want) {
		t.Errorf("%s differs from its golden (-update rewrites it); got\n%s", name, text.Bytes())
	}
	if bytes.Contains(got, []byte(canary)) {
		t.Errorf("%s has text of a prompt", name)
	}
}

// story lets four upstreams fare differently.
func (l *lookout) story() {
	l.page("a:1", idlePage())
	l.page("b:1", idlePage())
	asleep := idlePage()
	asleep.Awake = route.Known(0)
	l.page("c:1", asleep)
	l.p.shared.Scraped(scrape.Result{Upstream: "d:1", Reason: scrape.ReasonStatus, Status: 404})
	for i := range 3 {
		l.send("POST", "/v1/chat/completions", chatBody("Conversation 0.", 300+100*i)).
			finish(200*time.Millisecond, time.Second, fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":%d}}`, 700+250*i, 500*i))
	}
	l.send("POST", "/v1/chat/completions", chatBody("Conversation 2.", 200)).
		finish(100*time.Millisecond, time.Second, `{"prompt_tokens":500,"completion_tokens":20}`)
	l.send("GET", "/v1/models", "").stop()
	l.send("POST", "/v1/chat/completions", `{"model":"m"}`).stop()
	synctest.Wait()
	l.page("a:1", idlePage())
	l.page("b:1", idlePage())
	l.page("c:1", asleep)
	l.send("POST", "/v1/chat/completions", chatBody("Conversation 0.", 900)) // under way
}

func TestStateGolden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLookout(t, LLMPrefix{State: "golden"}, "a:1", "b:1", "c:1", "d:1")
		l.story()
		r, ok := reportStates(time.Now(), "golden", keptDecisions)
		if !ok || len(r.States) != 1 {
			t.Fatalf("%d states of the name are reported, want one", len(r.States))
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		goldenJSON(t, "state.json", text)
	})
}

// BenchmarkReport512 makes a report of 512 busy upstreams, once for all who look
// within half a second.
func BenchmarkReport512(b *testing.B) {
	p := &LLMPrefix{State: "bench"}
	p.settings = p.withDefaults()
	shared, err := loadState(p.settings)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := shared.release(); err != nil {
			b.Error(err)
		}
	}()
	now := time.Unix(1_000_000, 0)
	for i := range 512 {
		dial := fmt.Sprintf("10.0.0.%d:%d", i%256, 8000+i/256)
		load := idlePage()
		shared.router.Scraped(now, dial, &load)
		for s := range keptSteps {
			shared.journal.decided(now.Add(time.Duration(s)*stepSpan), prompt.Chat, dial, 1, &someChoice)
		}
	}
	c := statusCache{state: "bench"}
	for b.Loop() {
		now = now.Add(time.Second)
		if text, err := c.get(now); err != nil || len(text) == 0 {
			b.Fatal(err)
		}
	}
}
