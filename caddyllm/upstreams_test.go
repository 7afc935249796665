package caddyllm

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

func offer(dials ...string) (pool reverseproxy.UpstreamPool) {
	for _, d := range dials {
		pool = append(pool, &reverseproxy.Upstream{Dial: d, Host: new(reverseproxy.Host)})
	}
	return pool
}

// FC-104: where requests say which upstreams there are, these aren't scraped.
func TestFC104SourcesThatAskRequestsAreKnown(t *testing.T) {
	t.Setenv("ENGINES", "engines.test")
	for raw, want := range map[string]bool{
		`{"source":"a","name":"engines.test","port":"8000"}`:                                                false,
		`{"source":"a","name":"{env.ENGINES}","port":"8000"}`:                                               false,
		`{"source":"a","name":"{http.request.header.X-Up}","port":"8000"}`:                                  true,
		`{"source":"srv","service":"vllm","proto":"tcp","name":"{http.request.host}"}`:                      true,
		`{"source":"multi","sources":[{"source":"a","name":"b"},{"source":"a","port":"{http.vars.port}"}]}`: true,
		`{"source":"x","resolver":{"addresses":["{http.request.uri.query.dns}"]}}`:                          true,
	} {
		if got := asksRequests(&reverseproxy.Handler{DynamicUpstreamsRaw: []byte(raw)}); got != want {
			t.Errorf("asksRequests(%s) = %v, want %v", raw, got, want)
		}
	}
	loaded := &reverseproxy.Handler{DynamicUpstreams: &reverseproxy.AUpstreams{Name: "{http.request.host}"}}
	if !asksRequests(loaded) {
		t.Error("a source that was loaded already isn't looked at")
	}
}

// FC-94: the poller is told of a dynamic upstream when it comes, and again in
// time while it is offered; what is no longer offered is forgotten.
func TestFC94OfferedUpstreams(t *testing.T) {
	o := &offered{at: make(map[string]time.Time)}
	now := time.Unix(1_000_000, 0)
	if due := o.due(now, offer("a", "b")); !slices.Equal(due, []string{"a", "b"}) {
		t.Errorf("at first %q are due, want both", due)
	}
	told := map[string]time.Time{"a": now, "b": now}
	for i := range 600 { // ten minutes of requests, in changing order
		now = now.Add(time.Second)
		offered := offer("a", "b")
		if i%2 == 0 {
			offered = offer("b", "a")
		}
		for _, dial := range o.due(now, offered) {
			if since := now.Sub(told[dial]); since < unseenAfter/4 {
				t.Errorf("%s is due again after %v", dial, since)
			}
			told[dial] = now
		}
		for dial, last := range told {
			if since := now.Sub(last); since > unseenAfter/2 {
				t.Fatalf("%s was not due for %v, and is scraped for %v only", dial, since, unseenAfter)
			}
		}
	}
	for i := range 10_000 { // an address each second
		now = now.Add(time.Second)
		if due := o.due(now, offer(fmt.Sprint(i))); len(due) != 1 {
			t.Fatalf("%q are due, want the new one", due)
		}
	}
	if len(o.at) > 100 {
		t.Errorf("%d addresses are remembered, want those of the last minute", len(o.at))
	}
}

// FC-77: a request goes round all upstreams before it comes back to one, and
// never twice in a row to one while there is another.
func TestFC77RetriesGoRound(t *testing.T) {
	all := offer("a", "b", "c")
	var tried, went []string
	for range 9 {
		tried = nextRound(all, tried)
		var d desk
		d.available(all, tried)
		targets := d.targets
		at := slices.IndexFunc(targets, func(t route.Target) bool { return !t.Tried })
		if at < 0 {
			t.Fatalf("after %q, all are tried", went)
		}
		went = append(went, targets[at].ID)
		tried = append(tried, targets[at].ID)
	}
	for i := range went {
		if i > 0 && went[i] == went[i-1] {
			t.Errorf("went %q: twice in a row", went)
		}
		if i >= 2 && i+3 <= len(went) && !slices.Contains(went[i:i+3], "a") {
			t.Errorf("went %q: one was left out for long", went)
		}
	}
	if got := nextRound(offer("a"), []string{"a"}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("with one upstream, tried is %q", got)
	}
	if got := nextRound(nil, []string{"a", "b"}); len(got) != 1 {
		t.Errorf("with none, tried is %q", got)
	}
}
