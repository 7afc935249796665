package e2e

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// offer makes these the upstreams of the dynamic source.
func offer(dials ...string) {
	sourced.Lock()
	defer sourced.Unlock()
	sourced.dials = dials
}

// FC-87: with nothing to choose from the answer is 503, with one thing that.
func TestFC87NothingToChooseFrom(t *testing.T) {
	engines := newEngines(t, 8)
	prompt := func(i int) []byte { return chat(user(text(fmt.Sprint("p", i), 600)), nil) }

	// A source that offers nobody, one, and nobody again.
	offer()
	g := site{proxy: "dynamic bench"}.start(t)
	for _, path := range []string{"/v1/chat/completions", "/v1/models"} { // decided, and left to the fallback
		if a := g.post(path, prompt(0)); a.status != 503 {
			t.Errorf("%s with no upstream: status %d, want 503", path, a.status)
		}
	}
	offer(engines[0].addr)
	if a := g.post("/v1/chat/completions", prompt(0)); a.status != 200 {
		t.Errorf("with one upstream: status %d", a.status)
	}
	offer()
	if a := g.post("/v1/chat/completions", prompt(0)); a.status != 503 {
		t.Errorf("with none again: status %d, want 503", a.status)
	}
	g.idle()

	// All are down, and known to be.
	for _, n := range []int{1, 2, 8} {
		var dead []string
		for range n {
			dead = append(dead, deadAddress(t))
		}
		g := site{upstreams: dead, proxy: "fail_duration 1m"}.start(t)
		for i := range n + 2 {
			if a := g.post("/v1/chat/completions", prompt(i)); i < n && a.status != 502 || i >= n && a.status != 503 {
				t.Errorf("%d dead upstreams: request %d came to %d, want 502 %d times, then 503", n, i, a.status, n)
			}
		}
		if lines := g.logged("panic"); len(lines) > 0 {
			t.Errorf("panics: %v", lines)
		}
	}

	// All but one.
	mixed := []string{deadAddress(t), deadAddress(t), engines[1].addr, deadAddress(t)}
	g = site{upstreams: mixed, proxy: "fail_duration 1m\nlb_retries 3"}.start(t)
	for i := range 20 {
		if a := g.post("/v1/chat/completions", prompt(i)); a.status != 200 || i > 8 && a.attempt != 1 {
			t.Errorf("prompt %d: status %d at attempt %d, want the one that is there", i, a.status, a.attempt)
		}
	}

	// All have as many as they may have.
	full := engines[6:]
	g = site{upstreams: addrs(full), proxy: "unhealthy_request_count 1"}.start(t)
	for _, e := range full {
		e.hold()
	}
	answers := make(chan answer, 2)
	for i := range 2 {
		go func() { answers <- g.post("/v1/chat/completions", prompt(i)) }() // ends below
		eventually(t, "a request is held", func() bool { return full[0].count()+full[1].count() >= i+1 })
	}
	if a := g.post("/v1/chat/completions", prompt(3)); a.status != 503 {
		t.Errorf("with all full: status %d, want 503", a.status)
	}
	for _, e := range full {
		e.release()
	}
	for range 2 {
		if a := <-answers; a.status != 200 {
			t.Errorf("a request that found room: status %d", a.status)
		}
	}
	g.idle()
	if full[0].count() != 1 || full[1].count() != 1 {
		t.Errorf("%d and %d requests reached engines that may have one", full[0].count(), full[1].count())
	}
}

// FC-87: upstreams that come and go while many choose: an answer, or a plain 503
// where nobody was there.
func TestFC87UpstreamsComeAndGoWhileManyChoose(t *testing.T) {
	engines := newEngines(t, 8)
	offer(addrs(engines)...)
	g := site{proxy: "dynamic bench\nlb_retries 2"}.start(t)
	var clients sync.WaitGroup
	stop := make(chan struct{})
	var flips sync.WaitGroup
	var flipped atomic.Int64
	flip := func() {
		i := flipped.Add(1)
		var some []string
		for j, e := range engines {
			if (i>>(j%3)+int64(j))%3 == 0 {
				some = append(some, e.addr)
			}
		}
		offer(some...)
	}
	flips.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				flip()
			}
		}
	})
	var ok, none atomic.Int64
	for c := range 16 {
		clients.Go(func() {
			for i := range 20 {
				flip() // who flips all the time may be held up just where nobody is offered
				a := g.post("/v1/chat/completions", chat(user(text(fmt.Sprint(c%4, "/", i), 600)), nil))
				switch a.status {
				case 200:
					ok.Add(1)
				case 503:
					none.Add(1)
				default:
					t.Errorf("status %d: %.200s", a.status, a.body)
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	flips.Wait()
	if ok.Load() < 160 {
		t.Errorf("%d of 320 requests were served, %d found nobody", ok.Load(), none.Load())
	}
	if lines := g.logged("panic"); len(lines) > 0 {
		t.Errorf("panics: %v", lines)
	}
	g.idle()
}
