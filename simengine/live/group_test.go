package live

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// startGroup runs n drivers for the rest of the bubble.
func startGroup(t *testing.T, n int, c simengine.Config) *Group {
	t.Helper()
	var drivers []*Driver
	for range n {
		drivers = append(drivers, New(newEngine(t, c), Options{}))
	}
	g, err := NewGroup(drivers...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return g
}

// inFlights is the number of requests on each rank.
func (g *Group) inFlights() []int {
	var n []int
	for _, d := range g.drivers {
		n = append(n, d.inFlight())
	}
	return n
}

func (g *Group) generate(t *testing.T, ctx context.Context, r simengine.Request) *Stream {
	t.Helper()
	s, err := g.Generate(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A burst within one snapshot goes round, however stale the counts are.
func TestGroupSpreadsABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := startGroup(t, 3, simengine.Config{})
		for i := range 9 {
			g.generate(t, t.Context(), simengine.Request{PromptTokens: 100, OutputTokens: 10})
			if got := g.inFlights(); i%3 == 2 && fmt.Sprint(got) != fmt.Sprint([]int{i/3 + 1, i/3 + 1, i/3 + 1}) {
				t.Errorf("after %d requests: %v", i+1, got)
			}
		}
		// Ties rotate, so that the next request after an idle time isn't always
		// for rank 0.
		seen := map[int]bool{}
		for range 3 {
			time.Sleep(time.Minute)
			g.generate(t, t.Context(), simengine.Request{PromptTokens: 100, OutputTokens: 10})
			for rank, n := range g.inFlights() {
				if n == 1 {
					seen[rank] = true
				}
			}
		}
		time.Sleep(time.Minute)
		if s := g.Stats(); s.FinishedStop != 12 || s.GenerationTokens != 120 || s.Running != 0 || s.Steps == 0 {
			t.Errorf("the sum of all is %+v", s)
		}
		if len(seen) != 3 {
			t.Errorf("three requests to idle engines went to the ranks %v", seen)
		}
	})
}

// What came past the balancer is seen with the next snapshot, not before.
func TestGroupSeesOthersLoadLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := startGroup(t, 2, simengine.Config{})
		g.generate(t, t.Context(), simengine.Request{PromptTokens: 10, OutputTokens: 1})
		time.Sleep(time.Second)
		if got := g.pick(time.Now()); got != 1 { // asks anew; the start has moved on
			t.Errorf("the start is rank %d, want 1", got)
		}
		g.mu.Lock()
		g.seen[0], g.seen[1] = counts{running: 1}, counts{running: 5}
		if got := g.pick(time.Now()); got != 0 {
			t.Errorf("picked rank %d, want the one with less", got)
		}
		// A queue before a full cache weighs up to four times itself.
		g.seen[0], g.seen[1] = counts{waiting: 2, usage: 1}, counts{running: 7, usage: 1}
		if got := g.pick(time.Now()); got != 1 {
			t.Errorf("picked rank %d, want the one without a queue", got)
		}
		g.seen[0], g.seen[1] = counts{waiting: 2, usage: 0.5}, counts{running: 7, usage: 1}
		if got := g.pick(time.Now()); got != 0 {
			t.Errorf("picked rank %d, want the one whose queue is short-lived", got)
		}
		g.mu.Unlock()
		time.Sleep(snapshotAge)
		g.pick(time.Now())
		if g.seen[0].running != 0 || g.seen[1].running != 0 {
			t.Errorf("after %v the counts are still %+v", snapshotAge, g.seen)
		}
	})
}

func TestGroupsThatMakeNoSense(t *testing.T) {
	if _, err := NewGroup(); err == nil {
		t.Error("a group of none")
	}
	one, two := New(newEngine(t, simengine.Config{}), Options{}), New(newEngine(t, simengine.Config{BlockSize: 32}), Options{})
	if _, err := NewGroup(one, two); err == nil {
		t.Error("a group of two configurations")
	}
	g, err := NewGroup(one)
	if err != nil || g.Rank(0) != one || g.Rank(1) != nil || g.Rank(-1) != nil || one.Rank(0) != one || one.Rank(1) != nil {
		t.Errorf("ranks of a group of one: %v", err)
	}
	if !g.ResetPrefixCache() {
		t.Error("an idle group doesn't reset its caches")
	}
}
