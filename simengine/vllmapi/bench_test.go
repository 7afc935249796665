package vllmapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"
)

// benchEngine has round figures: a step takes 10 ms, and 1 ms more for each 16
// prompt tokens; a request is seen at once.
var benchEngine = simengine.Config{
	Blocks: 4097, MaxNumSeqs: 4, MaxModelLen: 16_384,
	Cost: simengine.Cost{Base: 10 * time.Millisecond, PrefillToken: 0.001 / 16},
}

// bench is a server with its engine.
type bench struct {
	*Server
	t      *testing.T
	driver *live.Driver

	mu      sync.Mutex
	entries []Entry
}

// newBench runs a server until the test ends.
func newBench(t *testing.T, engine simengine.Config, speed float64, change ...func(*Config)) *bench {
	t.Helper()
	e, err := simengine.New(engine)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t}
	exporter, err := vllmmetrics.New(vllmmetrics.Options{
		Model: "m", Cache: vllmmetrics.CacheInfoOf(engine), Start: time.Now(),
		Stats: func(int) simengine.Stats { return b.driver.Stats() },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.driver = live.New(e, live.Options{Speed: speed, Observe: exporter.Observer(0)})
	c := Config{Model: "m", Driver: b.driver, Exporter: exporter, Seed: 1, Journal: func(e Entry) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.entries = append(b.entries, e)
	}}
	for _, f := range change {
		f(&c)
	}
	if b.Server, err = New(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = b.driver.Run(ctx) }) // returns ctx's cause
	group.Go(func() { b.Faults().Run(ctx) })
	t.Cleanup(func() { cancel(); group.Wait() })
	return b
}

// inBubble runs a test on a virtual clock.
func inBubble(t *testing.T, f func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newBench(t, benchEngine, 1)) })
}

func (b *bench) journal() []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Entry(nil), b.entries...)
}

func (b *bench) last() Entry {
	b.t.Helper()
	entries := b.journal()
	if len(entries) == 0 {
		b.t.Fatal("the journal is empty")
	}
	return entries[len(entries)-1]
}

// idle fails if anything is left in the engine. The gauges show it one step
// later.
func (b *bench) idle() {
	b.t.Helper()
	time.Sleep(time.Second) // of the bubble
	if s := b.driver.Stats(); s.Running != 0 || s.Waiting != 0 || s.KVUsage != 0 {
		b.t.Errorf("%d running, %d waiting, %v of the blocks used; want none", s.Running, s.Waiting, s.KVUsage)
	}
	if n := b.inFlight.Load(); n != 0 {
		b.t.Errorf("%d requests in flight, want none", n)
	}
}

// recorded is an answer as it came over time.
type recorded struct {
	httptest.ResponseRecorder
	begin   time.Time
	flushes []flushed
	panicv  any // that the handler ended with
}

// flushed is what was sent at once, and when.
type flushed struct {
	at   time.Duration
	text string
}

func (r *recorded) Flush() {
	sent := 0
	for _, f := range r.flushes {
		sent += len(f.text)
	}
	r.flushes = append(r.flushes, flushed{time.Since(r.begin), r.Body.String()[sent:]})
	r.ResponseRecorder.Flush()
}

// do sends a request without a network and waits for the answer's end.
func (b *bench) do(ctx context.Context, method, path, body string, header ...string) (r *recorded) {
	r = &recorded{ResponseRecorder: *httptest.NewRecorder(), begin: time.Now()}
	req := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	defer func() { r.panicv = recover() }()
	b.ServeHTTP(r, req)
	return r
}

func (b *bench) post(path, body string) *recorded {
	return b.do(b.t.Context(), http.MethodPost, path, body)
}

// textJob makes a job of a completion's body.
func (b *bench) textJob(w http.ResponseWriter, body string) *job {
	b.t.Helper()
	r := httptest.NewRequest(http.MethodPost, textPath, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	x := newExchange(w, r, false)
	j, err := b.readJob(x, textAPI, []byte(body))
	if err != nil {
		b.t.Fatal(err)
	}
	j.x, j.r = x, textAPI.render(j)
	return j
}

// refused checks an error's status, type and param, and returns its message.
func (r *recorded) refused(t *testing.T, status int, kind, param string) string {
	t.Helper()
	var e errorBody
	if err := json.Unmarshal(r.Body.Bytes(), &e); err != nil {
		t.Fatalf("answer %q: %v", r.Body, err)
	}
	got := ""
	if e.Error.Param != nil {
		got = *e.Error.Param
	}
	if r.Code != status || e.Error.Code != status || e.Error.Type != kind || got != param {
		t.Errorf("answer %d %s, want %d %s %q", r.Code, r.Body, status, kind, param)
	}
	return e.Error.Message
}
