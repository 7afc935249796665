package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// filler is a reader of n bytes of text that takes no memory.
type filler struct{ n int64 }

func (f *filler) Read(p []byte) (int, error) {
	if f.n == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), f.n)
	for i := range p[:n] {
		p[i] = 'a' + byte(i%23)
	}
	f.n -= n
	return int(n), nil
}

// bigBody is a chat with n bytes of text behind a head.
func bigBody(head string, n int64) (io.Reader, int64) {
	front := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"%s`, model, head)
	const back = `"}]}`
	return io.MultiReader(strings.NewReader(front), &filler{n}, strings.NewReader(back)), int64(len(front)+len(back)) + n
}

// swallow makes the engine read bodies without keeping them.
func (e *engine) swallow() {
	e.fail(func(w http.ResponseWriter, r *http.Request) bool {
		sum := sha256.New()
		n, err := io.Copy(sum, r.Body)
		e.note(entry{method: r.Method, path: r.URL.Path, header: r.Header.Clone(), length: n, body: sum.Sum(nil), readErr: err})
		w.Header().Set("X-Engine", e.name)
		_, _ = io.WriteString(w, `{"ok":true}`)
		return true
	})
}

// FC-19: bodies round the limit and far beyond it arrive whole, and those with
// the same inspected head land together.
func TestFC19BodiesLargerThanTheLimit(t *testing.T) {
	const limit = 256 << 10
	engines := newEngines(t, 3)
	for _, e := range engines {
		e.swallow()
	}
	g := site{upstreams: addrs(engines), policy: "max_body 256KiB"}.start(t)
	head := text("head", 100<<10)
	home := ""
	for _, size := range []int64{limit - 1, limit, limit + 1, 4 * limit, 16 << 20} {
		for _, known := range []bool{true, false} {
			_, framing := bigBody(head, 0)
			body, length := bigBody(head, size-framing)
			want := sha256.New()
			again, _ := bigBody(head, size-framing)
			_, _ = io.Copy(want, again)
			req, err := http.NewRequest(http.MethodPost, "http://gateway/v1/chat/completions", body)
			if err != nil {
				t.Fatal(err)
			}
			if req.ContentLength = -1; known {
				req.ContentLength = length
			}
			a, err := g.do(req)
			if err != nil || a.status != 200 {
				t.Fatalf("%d bytes, length known %v: status %d, %v", size, known, a.status, err)
			}
			if home == "" {
				home = a.engine
			}
			// Bodies within the limit and beyond it differ in whether all of the
			// text is seen, and share the head.
			// The longest is more than the engine has room for, so where it lands
			// is a matter of load.
			if size <= 4*limit && a.engine != home || strings.Contains(a.route, "fallback") {
				t.Errorf("%d bytes, length known %v: on %s by %q, want %s", size, known, a.engine, a.route, home)
			}
			seen := engines[a.engine[1]-'1'].seen()
			last := seen[len(seen)-1]
			if last.length != size || !bytes.Equal(last.body, want.Sum(nil)) || last.readErr != nil {
				t.Errorf("%d bytes, length known %v: the engine read %d bytes, equal %v, %v", size, known, last.length, bytes.Equal(last.body, want.Sum(nil)), last.readErr)
			}
		}
	}
	g.idle()
}

// FC-20: however a body is cut into chunks, and over HTTP/2, it is the same
// prompt; one that stalls holds up nobody.
func TestFC20ChunkedUploads(t *testing.T) {
	engines := newEngines(t, 3)
	for _, e := range engines {
		e.swallow()
	}
	g := site{upstreams: addrs(engines)}.start(t)
	body := chat(user(text("chunked", 200_000)), nil)
	h2 := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return g.dial(ctx) }, Protocols: new(http.Protocols)}
	h2.Protocols.SetUnencryptedHTTP2(true)
	defer h2.CloseIdleConnections()
	home := ""
	for _, c := range []struct {
		name   string
		client *http.Client
		body   io.Reader
		length int64
	}{
		{"with a length", g.client, bytes.NewReader(body), int64(len(body))},
		{"in chunks", g.client, io.MultiReader(bytes.NewReader(body)), -1},
		{"in small chunks", g.client, &smallReads{bytes.NewReader(body)}, -1},
		{"HTTP/2 without a length", &http.Client{Transport: h2}, io.MultiReader(bytes.NewReader(body)), -1},
	} {
		req, err := http.NewRequest(http.MethodPost, "http://gateway/v1/chat/completions", c.body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = c.length
		res, err := c.client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		engine := res.Header.Get("X-Engine")
		if home == "" {
			home = engine
		}
		if res.StatusCode != 200 || engine != home {
			t.Errorf("%s: status %d on %s, want %s", c.name, res.StatusCode, engine, home)
		}
	}
	// Trailers arrive.
	conn, err := g.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	trailers := make(chan http.Header, 1)
	for _, e := range engines {
		e.fail(func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body)
			trailers <- r.Trailer
			return true
		})
	}
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n%x\r\n%s\r\n0\r\nX-Sum: abc\r\n\r\n", len(body), body)
	if got := (<-trailers).Get("X-Sum"); got != "abc" {
		t.Errorf("the trailer arrived as %q", got)
	}

	stalled, err := g.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stalled.Close()
	fmt.Fprintf(stalled, "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s", len(body), body[:50_000])
	for _, e := range engines {
		e.swallow()
	}
	for range 20 {
		if a := g.post("/v1/chat/completions", body); a.status != 200 {
			t.Errorf("beside a stalled upload: status %d", a.status)
		}
	}
}

// smallReads gives a few bytes at a time.
type smallReads struct{ r io.Reader }

func (s *smallReads) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), 100)]) }

// FC-21: a client that waits for permission gets it once and at once.
func TestFC21ExpectContinue(t *testing.T) {
	engines := newEngines(t, 2)
	for _, e := range engines {
		e.swallow()
	}
	g := site{upstreams: addrs(engines)}.start(t)
	body := chat(user(text("expect", 100_000)), nil)
	for i := range 20 {
		conn, err := g.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(body))
		r := bufio.NewReader(conn)
		// Nothing is sent before the interim answer, so waiting for it would
		// not end if it needed the body.
		if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
			t.Fatalf("request %d: %q, %v; want 100 Continue", i, line, err)
		}
		if line, _ := r.ReadString('\n'); line != "\r\n" {
			t.Fatalf("request %d: %q after the interim answer", i, line)
		}
		_, _ = conn.Write(body)
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("request %d: %v, %v; want 200 and no second 100", i, res, err)
		}
		conn.Close()
	}
	for _, e := range engines {
		for _, s := range e.seen() {
			if s.header.Get("Expect") != "" {
				t.Errorf("%s was asked for permission again", e.name)
			}
		}
	}

	// With nothing available the client is told so, and needs not send.
	g = site{upstreams: []string{deadAddress(t)}}.start(t)
	conn, err := g.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(body))
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err == nil && res.StatusCode == 100 {
		_, _ = conn.Write(body)
		res, err = http.ReadResponse(r, nil)
	}
	if err != nil || res.StatusCode < 500 {
		t.Errorf("nothing available: %v, %v; want a 5xx", res, err)
	}
}

// A hundred uploads of 20 MB at once, all of which the engines let wait: each
// holds no more than max_body, and other requests pass.
func TestAHundredLargeUploadsHoldNoMoreThanMaxBodyEach(t *testing.T) {
	const uploads, size, maxBody = 100, 20 << 20, 1 << 20
	engines := newEngines(t, 2)
	arrived := make(chan struct{}, uploads)
	gate := make(chan struct{})
	for _, e := range engines {
		e.fail(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("X-Upload") != "" {
				_, _ = io.CopyN(io.Discard, r.Body, maxBody/2)
				arrived <- struct{}{}
				<-gate
			}
			_, err := io.Copy(io.Discard, r.Body)
			if err == nil {
				w.Header().Set("X-Engine", e.name)
				_, _ = io.WriteString(w, `{"ok":true}`)
			}
			return true
		})
	}
	g := site{upstreams: addrs(engines), policy: "max_body 1MiB"}.start(t)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // what pools keep lives through one
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	var clients sync.WaitGroup
	for i := range uploads {
		clients.Go(func() {
			body, length := bigBody(text(fmt.Sprint("upload", i), 1000), size)
			req, err := http.NewRequest(http.MethodPost, "http://gateway/v1/chat/completions", body)
			if err != nil {
				t.Error(err)
				return
			}
			req.ContentLength = length
			req.Header.Set("X-Upload", "1")
			if a, err := g.do(req); err != nil || a.status != 200 {
				t.Errorf("upload %d: status %d, %v", i, a.status, err)
			}
		})
	}
	for range uploads {
		<-arrived
	}
	// What clients, engines and connections of this process need comes on top.
	const perConnection = 512 << 10
	held := int64(heap()) - int64(before)
	t.Logf("%d uploads hold %d MB", uploads, held>>20)
	if held > uploads*(maxBody+perConnection) {
		t.Errorf("%d uploads hold %d MB, want at most %d", uploads, held>>20, uploads*(maxBody+perConnection)>>20)
	}
	began := time.Now()
	for i := range 50 {
		if a := g.post("/v1/chat/completions", chat(user(text(fmt.Sprint("small", i), 2000)), nil)); a.status != 200 {
			t.Errorf("beside the uploads: status %d", a.status)
		}
	}
	if took := time.Since(began); took > patience {
		t.Errorf("50 requests beside the uploads took %v", took)
	}
	close(gate)
	clients.Wait()
	g.idle()
}
