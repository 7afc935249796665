package route

import (
	"math/rand/v2"
	"testing"
)

// FC-47: what has to give way gives way bit by bit. No decision evicts more than
// it brings, however full the index is, and whichever bound is reached.
func TestFC47EvictionIsSpreadOverDecisions(t *testing.T) {
	for name, capacity := range map[string]float64{"the memory's bound": 1e9, "the caches' bound": 100_000} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, 8)
			d.r = New(Options{MemoryBytes: 1 << 20, Seed: 1})
			for _, target := range d.targets {
				d.r.Scraped(d.now, target.ID, &Load{Waiting: Known(0), Running: Known(0), CapacityTokens: Known(capacity)})
			}
			rng := rand.New(rand.NewPCG(1, 2))
			evicted := func() uint64 {
				x := d.r.Index()
				return x.EvictedByCache + x.EvictedByMemory
			}
			full := 0
			for range 4000 {
				q := &Request{Chain: make([]uint64, 1+rng.IntN(100)), Stream: true}
				for i := range q.Chain {
					q.Chain[i] = rng.Uint64()
				}
				q.Bytes = len(q.Chain) * defaultBlockBytes
				before := evicted()
				d.complete(d.pick(q))
				if n := evicted() - before; n > uint64(len(q.Chain)) {
					t.Fatalf("a prompt of %d blocks evicts %d", len(q.Chain), n)
				} else if n > 0 {
					full++
				}
			}
			if full < 1000 {
				t.Errorf("%d of 4000 decisions evict: this test sees nothing", full)
			}
		})
	}
}
