package e2e

import (
	"io"
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func init() { caddy.RegisterModule(foreign{}) }

// foreign is a transport of somebody else's, of which nothing is known.
type foreign struct{}

// CaddyModule returns the Caddy module information.
func (foreign) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.reverse_proxy.transport.bench", New: func() caddy.Module { return new(foreign) }}
}

// UnmarshalCaddyfile implements caddyfile.Unmarshaler.
func (*foreign) UnmarshalCaddyfile(d *caddyfile.Dispenser) error { d.Next(); return nil }

// RoundTrip implements http.RoundTripper.
func (*foreign) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	return http.DefaultTransport.RoundTrip(r)
}

// Behind a transport that can't be watched an answer's header is all that is
// seen of it, and engines send that of a stream long before its first token.
func TestAForeignTransportsHeadersAreNoTokens(t *testing.T) {
	engines := newEngines(t, 1)
	d := engines[0].drips("text/event-stream")
	// Counts of the process may be of other tests too.
	g := site{upstreams: addrs(engines), policy: "state foreign", proxy: "transport bench"}.start(t)
	timed, _ := g.metric("caddy_llm_prefix_first_token_seconds_count")
	var rate float64
	for range 3 {
		res, errs := g.open(t.Context(), "/v1/chat/completions", chat(user(text("unseen", 9000)), map[string]any{"stream": true}), nil)
		d.header <- struct{}{}
		r := soon(t, "the header", res, errs)
		if n, _ := g.metric("caddy_llm_prefix_inflight_requests", `phase="prefill"`); n != 1 {
			t.Errorf("%v requests wait for their first token, want this one", n)
		}
		rate, _ = g.metric("caddy_llm_prefix_prefill_tokens_per_second", `state="foreign"`)
		d.pieces <- sse("one")
		close(d.pieces)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		r.Body.Close()
		g.idle()
		d = engines[0].drips("text/event-stream")
	}
	if now, _ := g.metric("caddy_llm_prefix_first_token_seconds_count"); now != timed {
		t.Errorf("%v first tokens are timed that nobody saw", now-timed)
	}
	if now, _ := g.metric("caddy_llm_prefix_prefill_tokens_per_second", `state="foreign"`); now != rate {
		t.Errorf("a rate of %v is learned from headers, want the %v of before", now, rate)
	}
	engines[0].fail(nil)
	if a := g.post("/v1/chat/completions", chat(user(text("unseen", 9000)), nil)); a.status != 200 {
		t.Errorf("status %d", a.status)
	}
}
