package kv

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Every block the pool gives out, finds and evicts is the one the simple twin
// gives, finds and evicts, whatever requests do.
func TestPoolIsAsItsTwin(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		size, caching := 2+random.IntN(40), seed%5 != 0
		p, w := New(size, caching), newTwin(size, caching)
		var held [][]int32
		for step := range 600 {
			act(t, random, p, w, &held)
			if err := p.Check(held); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if got, want := p.Free(), len(w.queue); got != want {
				t.Fatalf("seed %d, step %d: Free() = %d, want %d", seed, step, got, want)
			}
		}
	}
}

// act lets a request come or go: few distinct chains, so that they meet.
func act(t *testing.T, random *rand.Rand, p *Pool, w *twin, held *[][]int32) {
	t.Helper()
	if random.IntN(50) == 0 {
		if got, want := p.Reset(), w.reset(); got != want {
			t.Fatalf("Reset() = %v, want %v", got, want)
		}
	}
	if len(*held) > 0 && random.IntN(5) < 2 {
		i := random.IntN(len(*held))
		p.Release((*held)[i])
		w.release((*held)[i])
		*held = slices.Delete(*held, i, i+1)
		return
	}
	chain := make([]uint64, random.IntN(9))
	family := uint64(random.IntN(4))
	for i := range chain {
		chain[i] = family<<8 | uint64(i+1)
	}
	blocks, free := p.Match(chain, nil)
	hits := len(blocks)
	wantHits, wantFree := w.match(chain)
	if hits != wantHits || free != wantFree {
		t.Fatalf("Match(%v) = %d, %d, want %d, %d", chain, hits, free, wantHits, wantFree)
	}
	if random.IntN(6) == 0 {
		hits = 0 // computed beside the one that has it: twins
	}
	blocks = blocks[:hits]
	p.Hold(blocks)
	if want := w.hold(chain[:hits]); !slices.Equal(blocks, want) {
		t.Fatalf("Hold(%v) = %v, want %v", chain[:hits], blocks, want)
	}
	missing := len(chain) - hits + random.IntN(2)
	grown, ok := p.Take(missing, blocks)
	want, wantOK := w.take(missing)
	if ok != wantOK || !slices.Equal(grown[hits:], want) {
		t.Fatalf("Take(%d) = %v, %v, want %v, %v", missing, grown[hits:], ok, want, wantOK)
	}
	if ok {
		for i := hits; i < len(chain); i++ {
			before := none
			if i > 0 {
				before = grown[i-1]
			}
			p.Register(before, grown[i], chain[i])
			w.register(grown[i], chain[i])
		}
	}
	if len(grown) > 0 {
		*held = append(*held, grown)
	}
}

// A conversation's head outlives its tail: what is freed last is the head.
func TestTailOfAPrefixIsEvictedFirst(t *testing.T) {
	chain := []uint64{11, 12, 13, 14}
	for taken, want := range []int{4, 4, 4, 4, 4, 3, 2, 1, 0} {
		p := New(9, true)
		blocks, _ := p.Take(4, nil)
		for i, id := range blocks {
			p.Register(append([]int32{none}, blocks...)[i], id, chain[i])
		}
		p.Release(blocks)
		p.Take(taken, nil)
		if found, _ := p.Match(chain, nil); len(found) != want {
			t.Errorf("after %d of 8 blocks were taken Match = %d hits, want %d", taken, len(found), want)
		}
	}
}

// A half-filled block remembers nothing; taking it costs nobody a hit.
func TestBlocksWithoutHashAreReusedFirst(t *testing.T) {
	p := New(4, true)
	blocks, _ := p.Take(3, nil)
	p.Register(none, blocks[0], 1)
	p.Register(blocks[0], blocks[1], 2)
	p.Release(blocks)
	again, _ := p.Take(1, nil)
	if again[0] != blocks[2] {
		t.Errorf("Take(1) = %v, want the block without a hash, %d", again, blocks[2])
	}
	if found, _ := p.Match([]uint64{1, 2}, nil); len(found) != 2 {
		t.Errorf("Match = %d hits, want 2", len(found))
	}
	if _, ok := p.Take(3, nil); ok {
		t.Error("Take(3) of 2 free blocks succeeded")
	}
	if p.Evictions() != 0 {
		t.Errorf("Evictions() = %d, want 0", p.Evictions())
	}
}

func TestResetWaitsForTheLastHolder(t *testing.T) {
	p := New(3, true)
	blocks, _ := p.Take(1, nil)
	p.Register(none, blocks[0], 7)
	if p.Reset() {
		t.Error("Reset() = true with a block held")
	}
	p.Release(blocks)
	if !p.Reset() {
		t.Error("Reset() = false with all blocks free")
	}
	if found, _ := p.Match([]uint64{7}, nil); len(found) != 0 {
		t.Error("a block was found after Reset")
	}
}

func BenchmarkRequest(b *testing.B) {
	p := New(30_000, true)
	chain := make([]uint64, 256)
	held := make([]int32, 0, len(chain))
	var n uint64
	b.ReportAllocs()
	for b.Loop() {
		n++
		for i := range chain { // half of it seen before
			chain[i] = uint64(i) + 1
			if i >= 128 {
				chain[i] |= n << 16
			}
		}
		held, _ = p.Match(chain, held[:0])
		p.Hold(held)
		hits := len(held)
		held, _ = p.Take(len(chain)-hits, held)
		for i := hits; i < len(chain); i++ {
			p.Register(held[max(i-1, 0)], held[i], chain[i])
		}
		p.Release(held)
	}
}
