package prefix

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkPut is of prompts of 128 blocks that are held, in an index that is
// far larger than the processor's caches: 64 upstreams of 440,000 tokens.
func BenchmarkPut(b *testing.B) {
	const upstreams, capacity, blocks = 64, 6875, 128
	x := NewIndex(256 << 20)
	rng := rand.New(rand.NewPCG(1, 2))
	var chains [][]uint64
	for u := range upstreams {
		x.SetCap(u, capacity)
		for range capacity / blocks {
			chain := make([]uint64, blocks)
			for i := range chain {
				chain[i] = rng.Uint64()
			}
			x.Put(u, chain)
			chains = append(chains, chain)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		i := rng.IntN(len(chains))
		x.Match(chains[i])
		x.Put(i/(capacity/blocks), chains[i])
	}
}
