package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// face is an engine whose metrics are a test's: path, status, header, body and
// pace. All that isn't a GET of metrics goes to the engine.
type face struct {
	addr   string
	engine *engine

	mu      sync.Mutex
	metrics http.HandlerFunc
	asked   []*http.Request // for metrics, without bodies
	open    int             // of these, in progress
	most    int             // in progress at once
}

// newFaces puts faces in front of n new engines; each shows an idle page.
func newFaces(t *testing.T, n int, opts ...func(*simOptions)) []*face {
	t.Helper()
	faces := make([]*face, n)
	for i, e := range newEngines(t, n, opts...) {
		f := &face{engine: e}
		f.show(quietPage(0, 0))
		server := serve(t, f)
		t.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
		})
		f.addr = server.Listener.Addr().String()
		faces[i] = f
	}
	return faces
}

func faceAddrs(faces []*face) []string {
	list := make([]string, len(faces))
	for i, f := range faces {
		list[i] = f.addr
	}
	return list
}

func (f *face) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "metrics") {
		f.engine.ServeHTTP(w, r)
		return
	}
	f.mu.Lock()
	f.asked = append(f.asked, r)
	f.open++
	f.most = max(f.most, f.open)
	h := f.metrics
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.open--
		f.mu.Unlock()
	}()
	h(w, r)
}

// answer makes metrics come from h.
func (f *face) answer(h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.metrics = h
}

// show makes metrics a page of text.
func (f *face) show(page string) {
	f.answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = fmt.Fprint(w, page)
	})
}

func (f *face) requests() []*http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*http.Request(nil), f.asked...)
}

func (f *face) scrapes() int { return len(f.requests()) }

// taken waits until the page that a face shows now was taken in. A scrape may be
// under way that has another, and the next begins when the one before is taken.
func (f *face) taken(t *testing.T) {
	t.Helper()
	n := f.scrapes()
	eventually(t, "the page of "+f.addr+" is taken in", func() bool { return f.scrapes() >= n+3 })
}

// gauge is what the gateway tells of an upstream; ok is false if it tells
// nothing.
func (g *gateway) gauge(name, upstream string) (v float64, ok bool) {
	g.t.Helper()
	v, n := g.metric("caddy_llm_prefix_"+name, `upstream="`+upstream+`"`)
	return v, n == 1
}

func (g *gateway) known(upstream string) bool {
	g.t.Helper()
	v, ok := g.gauge("upstream_load_known", upstream)
	return ok && v == 1
}

// becomes waits until the gateway knows an upstream's load, or doesn't.
func (g *gateway) becomes(known bool, upstreams ...string) {
	g.t.Helper()
	for _, u := range upstreams {
		eventually(g.t, fmt.Sprintf("the load of %s is known: %v", u, known), func() bool { return g.known(u) == known })
	}
}

// shows waits until the gateway tells this of an upstream. One look may find
// nothing: on a slow machine pages grow too old to count between two scrapes.
func (g *gateway) shows(name, upstream string, want float64) {
	g.t.Helper()
	eventually(g.t, fmt.Sprintf("%s of %s is %v", name, upstream, want), func() bool {
		v, ok := g.gauge(name, upstream)
		return ok && v == want
	})
}

// failedFor counts the scrapes of an upstream that failed for a reason.
func (g *gateway) failedFor(upstream, reason string) float64 {
	g.t.Helper()
	n, _ := g.metric("caddy_llm_prefix_scrapes_total", `upstream="`+upstream+`"`, `result="`+reason+`"`)
	return n
}

// warnings are the lines that an operator sees of an upstream.
func (g *gateway) warnings(upstream string, more ...string) []string {
	g.t.Helper()
	return g.logged(append([]string{`"level":"warn"`, upstream}, more...)...)
}

// cold sends n prompts that nobody has seen, and counts where they land.
func (g *gateway) cold(name string, n int, faces []*face) []int {
	g.t.Helper()
	counts := make([]int, len(faces))
	for i := range n {
		a := g.post("/v1/chat/completions", chat(user(text(fmt.Sprint(name, i), 400)), nil))
		if a.status != 200 {
			g.t.Fatalf("prompt %d: status %d: %.200s", i, a.status, a.body)
		}
		for j, f := range faces {
			if f.engine.name == a.engine {
				counts[j]++
			}
		}
	}
	return counts
}
