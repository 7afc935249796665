package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// model is what every engine of the bench serves.
const model = "bench"

// entry is one request that reached an engine.
type entry struct {
	method, path string
	header       http.Header
	length       int64 // Content-Length, -1 if chunked
	body         []byte
	readErr      error
	gone         bool // the caller left before the answer was whole
}

// engine is a simulated vLLM on a loopback port, with a journal, a page that a
// test may script, and requests that a test may hold.
type engine struct {
	name string
	addr string
	sim  http.Handler

	server *httptest.Server

	mu      sync.Mutex
	journal []entry
	page    func(w http.ResponseWriter) // instead of the simulator's
	gate    chan struct{}               // requests wait until it is closed; nil: open
	fault   func(w http.ResponseWriter, r *http.Request) bool
	scrapes int
}

// newEngines starts n engines, named U1 to Un, until the test ends.
func newEngines(t *testing.T, n int, opts ...func(*simOptions)) []*engine {
	t.Helper()
	engines := make([]*engine, n)
	for i := range engines {
		e := &engine{name: fmt.Sprintf("U%d", i+1), sim: newSim(t, opts...)}
		e.server = serve(t, e)
		e.addr = e.server.Listener.Addr().String()
		t.Cleanup(func() {
			e.release()
			e.server.CloseClientConnections()
			e.server.Close()
		})
		engines[i] = e
	}
	return engines
}

// agreeable starts n engines that answer whatever they are asked.
func agreeable(t *testing.T, n int) []*engine {
	t.Helper()
	engines := newEngines(t, n)
	for _, e := range engines {
		e.answer(yes)
	}
	return engines
}

func addrs(engines []*engine) []string {
	list := make([]string, len(engines))
	for i, e := range engines {
		list[i] = e.addr
	}
	return list
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	page, gate, fault := e.page, e.gate, e.fault
	if r.URL.Path == "/metrics" {
		e.scrapes++
	}
	e.mu.Unlock()
	if r.URL.Path == "/metrics" {
		if page != nil {
			page(w)
			return
		}
		e.sim.ServeHTTP(w, r)
		return
	}
	if fault != nil && fault(w, r) {
		return
	}
	body, err := io.ReadAll(r.Body)
	i := e.note(entry{method: r.Method, path: r.URL.Path, header: r.Header.Clone(), length: r.ContentLength, body: body, readErr: err})
	if gate != nil {
		select {
		case <-gate:
		case <-r.Context().Done():
		}
	}
	w.Header().Set("X-Engine", e.name)
	r.Body = io.NopCloser(bytes.NewReader(body))
	e.sim.ServeHTTP(w, r)
	if r.Context().Err() != nil {
		e.mu.Lock()
		e.journal[i].gone = true
		e.mu.Unlock()
	}
}

func (e *engine) note(n entry) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.journal = append(e.journal, n)
	return len(e.journal) - 1
}

// seen is a copy of the journal.
func (e *engine) seen() []entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]entry(nil), e.journal...)
}

func (e *engine) count() int { return len(e.seen()) }

// hold makes requests wait, with their prompt received, until release.
func (e *engine) hold() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gate == nil {
		e.gate = make(chan struct{})
	}
}

func (e *engine) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gate != nil {
		close(e.gate)
		e.gate = nil
	}
}

// show replaces the metrics page.
func (e *engine) show(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.page = func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, text)
	}
}

// fail makes requests other than scrapes meet f first; it reports whether it
// dealt with the request.
func (e *engine) fail(f func(w http.ResponseWriter, r *http.Request) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fault = f
}

func (e *engine) scraped() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.scrapes
}

// gauge reads one number off the simulator's own page.
func (e *engine) gauge(t *testing.T, name string) float64 {
	t.Helper()
	w := httptest.NewRecorder()
	e.sim.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, name+"{") {
			fields := strings.Fields(line)
			var v float64
			if _, err := fmt.Sscan(fields[len(fields)-1], &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("engine %s has no %s", e.name, name)
	return 0
}

// reset is a fault: the connection is reset, after reading n bytes of the
// body.
func reset(n int64) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.CopyN(io.Discard, r.Body, n)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_ = conn.(*net.TCPConn).SetLinger(0) // makes Close send a reset
		conn.Close()
		return true
	}
}

// text is P(s, n) of the field cases: n bytes that repeat nothing. It begins
// with a canary, where there is room for it: nobody may ever log it.
func text(seed string, n int) string {
	var b strings.Builder
	if n >= 4*len(canary) {
		b.WriteString(canary)
	}
	for i := 0; b.Len() < n; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s:%d", seed, i))
		b.WriteString(hex.EncodeToString(sum[:]))
	}
	return b.String()[:n]
}

// quietPage is that of an idle engine, as vLLM writes it.
func quietPage(waiting, running int) string {
	return fmt.Sprintf(`# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="bench"} %d.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="bench"} %d.0
`, running, waiting)
}
