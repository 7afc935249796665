package e2e

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// drip is an engine that sends a header, and then a piece each time it is told
// to.
type drip struct {
	header chan struct{} // a value sends the header
	pieces chan string   // closed, it ends the answer
}

// drips makes the engine answer so.
func (e *engine) drips(contentType string) *drip {
	d := &drip{header: make(chan struct{}), pieces: make(chan string)}
	e.fail(func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Engine", e.name)
		flush := w.(http.Flusher).Flush
		select {
		case <-d.header:
			flush()
		case <-r.Context().Done():
			return true
		}
		for {
			select {
			case piece, ok := <-d.pieces:
				if !ok {
					return true
				}
				_, _ = io.WriteString(w, piece)
				flush()
			case <-r.Context().Done():
				return true
			}
		}
	})
	return d
}

// open sends a request and waits for the answer's header.
func (g *gateway) open(ctx context.Context, path string, body []byte, header map[string]string) (<-chan *http.Response, <-chan error) {
	res, errs := make(chan *http.Response, 1), make(chan error, 1)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gateway"+path, strings.NewReader(string(body)))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	go func() { // ends with the header, or with ctx
		if r, err := g.client.Do(req); err != nil {
			errs <- err
		} else {
			res <- r
		}
	}()
	return res, errs
}

// soon takes what must come without anything else happening first.
func soon[T any](t *testing.T, what string, from <-chan T, errs <-chan error) (v T) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v = <-from:
	case err := <-errs:
		t.Fatalf("waiting for %s: %v", what, err)
	case <-timer.C:
		t.Fatalf("waiting for %s: gave up after %v", what, patience)
	}
	return v
}

// FC-97: with compression on, a stream's header comes before its first token,
// and each event before the next.
func TestFC97StreamsWithCompressionOn(t *testing.T) {
	engines := newEngines(t, 1)
	d := engines[0].drips("text/event-stream; charset=utf-8")
	g := site{upstreams: addrs(engines), before: "encode gzip zstd {\n minimum_length 1\n match {\n header Content-Type text/*\n }\n}"}.start(t)
	for _, coding := range []string{"gzip", "identity"} {
		res, errs := g.open(t.Context(), "/v1/chat/completions", chat(user("Hello."), map[string]any{"stream": true}), map[string]string{"Accept-Encoding": coding})
		d.header <- struct{}{}
		if coding == "identity" {
			// Caddy's encoder sends the header with the first bytes.
			r := soon(t, "the header", res, errs)
			back := make(chan *http.Response, 1)
			back <- r
			res = back
		}
		d.pieces <- sse("one")
		r := soon(t, "the header", res, errs)
		if got := r.Header.Get("Content-Encoding"); coding == "gzip" && got != "gzip" {
			t.Fatalf("the stream is coded %q: this test would see nothing", got)
		}
		var text io.Reader = r.Body
		lines := make(chan string)
		failed := make(chan error, 1)
		go func() { // ends with the stream
			if coding == "gzip" {
				unpacked, err := gzip.NewReader(r.Body)
				if err != nil {
					failed <- err
					return
				}
				text = unpacked
			}
			for s := bufio.NewScanner(text); s.Scan(); {
				if strings.HasPrefix(s.Text(), "data: ") {
					lines <- s.Text()
				}
			}
			close(lines)
		}()
		for i := range 20 {
			want := strings.TrimSpace(sse("one"))
			if i > 0 {
				d.pieces <- sse(fmt.Sprint("t", i))
				want = strings.TrimSpace(sse(fmt.Sprint("t", i)))
			}
			if got := soon(t, "an event", lines, failed); got != want {
				t.Errorf("%s: event %d is %q, want %q", coding, i, got, want)
			}
		}
		close(d.pieces)
		if _, open := <-lines; open {
			t.Errorf("%s: more events than were sent", coding)
		}
		r.Body.Close()
		d = engines[0].drips("text/event-stream")
	}
	g.idle()
}

// FC-98: Ollama's streams of JSON lines come line by line, its bodies are read,
// and a request counts as load for as long as it is silent.
func TestFC98LinesOfJSONAndSilence(t *testing.T) {
	faces := newFaces(t, 2)
	g := site{upstreams: faceAddrs(faces)}.start(t)
	for path, body := range map[string]func(turn string) []byte{
		"/api/chat": func(turn string) []byte {
			return jsonOf(t, map[string]any{"model": model, "messages": []message{{"system", text("ollama", 3000)}, {"user", turn}}})
		},
		"/api/generate": func(turn string) []byte {
			return jsonOf(t, map[string]any{"model": model, "prompt": text("generate", 3000) + turn})
		},
	} {
		line := func(i int) string {
			return fmt.Sprintf(`{"model":"bench","response":"t%d","done":false}`, i) + "\n"
		}
		drips := map[string]*drip{}
		for _, f := range faces {
			drips[f.engine.name] = f.engine.drips("application/x-ndjson")
		}
		// begun is the drip that has the request; it is on its way.
		begun := func() (one *drip) {
			eventually(t, "the request has arrived", func() bool {
				for _, d := range drips {
					select {
					case d.header <- struct{}{}:
						one = d
						return true
					default:
					}
				}
				return false
			})
			return one
		}
		home := ""
		for turn := range 4 {
			res, errs := g.open(t.Context(), path, body(fmt.Sprint(turn)), nil)
			// Silent before its header, it counts.
			eventually(t, "the silent request counts", func() bool {
				n, _ := g.metric("caddy_llm_prefix_inflight_requests")
				return n == 1
			})
			d := begun()
			d.pieces <- line(0)
			r := soon(t, "the header", res, errs)
			lines := bufio.NewReader(r.Body)
			for i := range 10 {
				if i > 0 {
					d.pieces <- line(i)
				}
				if got, err := lines.ReadString('\n'); err != nil || got != line(i) {
					t.Fatalf("%s: line %d is %q, %v", path, i, got, err)
				}
			}
			if n, _ := g.metric("caddy_llm_prefix_inflight_requests"); n != 1 {
				t.Errorf("%s: %v requests in flight between two lines, want 1", path, n)
			}
			close(d.pieces)
			if _, err := lines.ReadByte(); err != io.EOF {
				t.Errorf("%s: after the last line: %v", path, err)
			}
			r.Body.Close()
			g.idle()
			engine := r.Header.Get("X-Engine")
			if turn > 0 && (engine != home || !strings.Contains(r.Header.Get("X-LLM"), "reason=prefix")) {
				t.Errorf("%s: turn %d lands on %s by %q, want %s for its prefix", path, turn, engine, r.Header.Get("X-LLM"), home)
			}
			home = engine
			for _, f := range faces {
				drips[f.engine.name] = f.engine.drips("application/x-ndjson")
			}
		}
	}
}
