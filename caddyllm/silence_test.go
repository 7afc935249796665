package caddyllm

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// pipes is a listener whose connections are pipes, which know no network and so
// may live on a virtual clock.
type pipes chan net.Conn

// Accept implements net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

// Close implements net.Listener.
func (p pipes) Close() error {
	close(p) // a server closes its listener once
	return nil
}

// Addr implements net.Listener.
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// FC-98: nothing of ours ends an answer that is silent for minutes, before its
// header or between two lines, and for as long as it lasts it is load.
func TestFC98SilenceIsLoadAndNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const line = `{"response":"word","done":false}` + "\n"
		accepted := make(pipes)
		engine := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			time.Sleep(10 * time.Minute)
			w.Header().Set("Content-Type", "application/x-ndjson")
			for range 6 {
				_, _ = io.WriteString(w, line)
				w.(http.Flusher).Flush()
				time.Sleep(2 * time.Minute)
			}
		})}
		served := make(chan struct{})
		go func() { // ends with Close
			defer close(served)
			_ = engine.Serve(accepted)
		}()

		p := &LLMPrefix{logger: zap.NewNop(), fallback: new(reverseproxy.RandomSelection)}
		p.settings = p.withDefaults()
		p.shared = &state{name: "silence", router: route.New(route.Options{Seed: 1})}
		p.upstreams = &upstreams{policy: p}
		ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
		transport := new(reverseproxy.HTTPTransport)
		if err := transport.Provision(ctx); err != nil {
			t.Fatal(err)
		}
		transport.Transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			accepted <- theirs
			return ours, nil
		}
		watched := &observer{transport, p}

		began := time.Now()
		req := httptest.NewRequest(http.MethodPost, "http://engine:1/api/generate", strings.NewReader(`{"model":"m","prompt":"Hello."}`))
		req.RequestURI = ""
		reqCtx, done := context.WithCancel(context.WithValue(t.Context(), caddy.ReplacerCtxKey, caddy.NewReplacer()))
		req = req.WithContext(reqCtx)
		if u := p.Select(reverseproxy.UpstreamPool{{Dial: "engine:1", Host: new(reverseproxy.Host)}}, req, nil); u == nil {
			t.Fatal("no upstream is chosen")
		}
		inFlight := func() int {
			views := p.shared.snapshot(time.Now())
			return views[0].Prefill + views[0].Decode
		}
		watch := time.NewTicker(time.Minute)
		stop := make(chan struct{})
		looks := make(chan int, 1)
		go func() { // ends with the answer
			n := 0
			for {
				select {
				case <-watch.C:
					if inFlight() == 1 {
						n++
					}
				case <-stop:
					looks <- n
					return
				}
			}
		}()
		res, err := watched.RoundTrip(req)
		if err != nil {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		text, err := io.ReadAll(res.Body)
		if err != nil || string(text) != strings.Repeat(line, 6) {
			t.Errorf("after %v the answer is %q, %v", time.Since(began), text, err)
		}
		_ = res.Body.Close()
		close(stop)
		if took := time.Since(began); took != 22*time.Minute {
			t.Errorf("the answer took %v, want 22 minutes", took)
		}
		if n := <-looks; n < 21 {
			t.Errorf("at %d of 22 looks, a minute apart, the request counted as load", n)
		}
		if n := inFlight(); n != 0 {
			t.Errorf("%d requests in flight in the end", n)
		}
		done()
		watch.Stop()
		cancel()
		_ = transport.Cleanup()
		_ = engine.Close()
		<-served
		synctest.Wait()
	})
}
