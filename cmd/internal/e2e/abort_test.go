package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// FC-80: with flush_interval -1, which many guides have, a client's leaving ends
// the request at the engine too, and what is in flight is counted for as long
// as the engine has it.
func TestFC80FlushIntervalDoesNotHideLoad(t *testing.T) {
	engines := newEngines(t, 1, realTime)
	g := site{upstreams: addrs(engines), proxy: "flush_interval -1"}.start(t)
	var clients sync.WaitGroup
	for i := range 20 {
		clients.Go(func() {
			body := chat(user(text(fmt.Sprint("left", i), 2000)), map[string]any{"stream": true, "max_tokens": 5000, "ignore_eos": true})
			if err := g.leave(t.Context(), g.client, body, true, nil); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	clients.Wait()
	quiet(t, g, engines...)

	// While one is held it counts.
	engines[0].hold()
	done := make(chan answer, 1)
	go func() { done <- g.post("/v1/chat/completions", chat(user("Hello."), map[string]any{"stream": true})) }() // ends below
	eventually(t, "the request has arrived", func() bool { return engines[0].count() == 21 })
	if n, _ := g.metric("caddy_llm_prefix_inflight_requests"); n != 1 {
		t.Errorf("%v requests in flight, want the one that is held", n)
	}
	engines[0].release()
	<-done
	g.idle()
}

// FC-81: clients that leave are nobody's failure, neither for Caddy's passive
// health checks nor for the policy.
func TestFC81AbortsAreNotFailures(t *testing.T) {
	engines := newEngines(t, 2, realTime)
	g := site{upstreams: addrs(engines), proxy: "fail_duration 30s\nmax_fails 3"}.start(t)
	shared := text("home", 4000)
	home := g.post("/v1/chat/completions", chat(user(shared), nil)).engine
	var at *engine
	for _, e := range engines {
		if e.name == home {
			at = e
		}
	}
	before := at.count()
	for i := range 50 {
		body := chat(append(user(shared), message{"user", fmt.Sprint(i)}), map[string]any{"stream": true, "max_tokens": 5000, "ignore_eos": true})
		if err := g.leave(t.Context(), g.client, body, i%2 == 0, at); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		quiet(t, g, engines...)
	}
	if n := at.count() - before; n != 50 {
		t.Errorf("%s got %d of the 50 that left, want all", home, n)
	}
	a := g.post("/v1/chat/completions", chat(append(user(shared), message{"user", "And?"}), nil))
	if a.status != 200 || a.engine != home || a.attempt != 1 {
		t.Errorf("afterwards: status %d of %s at attempt %d, want 200 of %s at once", a.status, a.engine, a.attempt, home)
	}
}

// FC-81: nor are uploads that break behind what the policy looks at.
func TestFC81BrokenUploadsAreNotFailures(t *testing.T) {
	engines := newEngines(t, 2)
	g := site{upstreams: addrs(engines), policy: "max_body 8KiB"}.start(t)
	shared := text("home", 3000)
	home := g.post("/v1/chat/completions", chat(user(shared), nil)).engine
	for i := range 10 {
		// The prompt stands in what is looked at, so it goes to its home.
		long := chat(append(user(shared), message{"user", strings.Repeat("x", 400_000)}), nil)
		conn, err := g.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n%s", long[:100_000])
		conn.Close()
		eventually(t, "the upload is over", func() bool { return len(g.logged("handled request", "/v1/chat/completions")) == 2*i+2 })
		g.idle()
		a := g.post("/v1/chat/completions", chat(append(user(shared), message{"user", fmt.Sprint(i)}), nil))
		if a.status != 200 || a.engine != home || a.attempt != 1 {
			t.Fatalf("after %d broken uploads: status %d of %s at attempt %d, want 200 of %s at once", i+1, a.status, a.engine, a.attempt, home)
		}
	}
}
