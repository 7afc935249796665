package caddyllm

import (
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// Who sends a long prompt sees to all of it, and lets go of the lock between its
// parts, and after a panic.
func TestALongPromptIsSettledByItsSender(t *testing.T) {
	s := &state{router: route.New(route.Options{})}
	now := time.Unix(1_000_000, 0)
	chain := make([]uint64, 5000)
	for i := range chain {
		chain[i] = uint64(i+1) * 0x9e3779b97f4a7c15
	}
	q := &route.Request{Chain: chain, Bytes: 256 * len(chain), Stream: true}
	targets := []route.Target{{ID: "engine:8000"}}
	pick := func() route.Choice {
		c, ok := s.pick(now, q, targets)
		if !ok {
			t.Fatal("nothing is picked")
		}
		if s.router.Unsettled() {
			t.Error("something is left to do after pick")
		}
		return c
	}
	c := pick()
	if again := pick(); again.MatchedBlocks != len(chain) {
		t.Errorf("%d blocks are found, want all %d", again.MatchedBlocks, len(chain))
	}
	s.firstByte(now, c.Ticket)
	if s.router.Unsettled() {
		t.Error("something is left to do after the first byte")
	}
	s.done(now, c.Ticket, route.Completed, nil)
	if s.router.Unsettled() {
		t.Error("something is left to do after the end")
	}

	func() {
		defer func() { _ = recover() }()
		s.withRouter(func() { panic("a bug") })
	}()
	if !s.mu.TryLock() {
		t.Fatal("a panic leaves the router locked")
	}
	s.mu.Unlock()
}
