package prefix

import (
	"math/rand/v2"
	"testing"
)

func longChain(seed uint64, n int) []uint64 {
	rng := rand.New(rand.NewPCG(seed, 5))
	chain := make([]uint64, n)
	for i := range chain {
		chain[i] = rng.Uint64()
	}
	return chain
}

func (x *Index) finish() {
	for x.Pending() {
		x.Work()
	}
}

// A prompt of as many blocks as there can be holds up nobody for a millisecond:
// whatever is done with it is done in pieces, each of at most AtOnce blocks.
func TestLongPromptsAreSeenToInPieces(t *testing.T) {
	x := NewIndex(1 << 30)
	x.SetCap(0, 2*MaxBlocks)
	chain, other := longChain(1, MaxBlocks), longChain(2, 2*MaxBlocks-10)
	held := make([]int32, 1)
	last := 0
	// Each call adds or removes, and each removal makes room for an addition.
	does := func(what string, do func()) {
		t.Helper()
		do()
		touched := max(x.taken-last, last-x.taken)
		evicted := int(x.evicted.Cap)
		x.evicted.Cap = 0
		last = x.taken
		if touched > AtOnce || evicted > AtOnce+1 {
			t.Fatalf("%s adds or removes %d entries and evicts %d in one go, want at most %d", what, touched, evicted, AtOnce)
		}
	}
	work := func(most int) {
		t.Helper()
		calls := 0
		for ; x.Pending(); calls++ {
			does("Work", x.Work)
		}
		if calls > most {
			t.Errorf("it takes %d calls of Work, want at most %d", calls, most)
		}
	}
	const pieces = MaxBlocks / AtOnce
	does("Put", func() { x.Put(0, chain) })
	if matchInto(x, chain[:AtOnce], held); held[0] != AtOnce {
		t.Errorf("%d blocks of the head are held at once, want all %d", held[0], AtOnce)
	}
	work(pieces + 1)
	if matchInto(x, chain, held); held[0] != MaxBlocks || x.Held(0) != MaxBlocks {
		t.Errorf("%d blocks match and %d are held, want all", held[0], x.Held(0))
	}
	check(t, x)

	// Used again, and with others evicted.
	does("Put", func() { x.Put(0, other) })
	work(2*pieces + 1)
	does("Put", func() { x.Put(0, chain) })
	work(pieces + 1)
	if matchInto(x, chain, held); held[0] != MaxBlocks || x.Held(0) != 2*MaxBlocks {
		t.Errorf("%d blocks match and %d are held, want %d and %d", held[0], x.Held(0), MaxBlocks, 2*MaxBlocks)
	}

	// Given up before it was all noted.
	third := longChain(3, MaxBlocks)
	does("Put", func() { x.Put(0, third) })
	does("Work", x.Work)
	does("Drop", func() { x.Drop(0, third, 10) })
	work(pieces + 1)
	if matchInto(x, third, held); held[0] != 10 {
		t.Errorf("%d blocks are held of what was dropped but for 10", held[0])
	}
	check(t, x)

	// Forgotten meanwhile.
	does("Put", func() { x.Put(0, third) })
	x.Clear(0)
	if x.Pending() || x.Held(0) != 0 {
		t.Errorf("after Clear %d blocks are held", x.Held(0))
	}
}

// An engine that caches nothing, and a client that leaves, are dropped from an
// index that never held anything.
func TestDropWhereNothingWasEverHeld(t *testing.T) {
	x := NewIndex(1 << 20)
	x.SetCap(0, 0)
	x.SetCap(100, 10)
	chain := longChain(1, 40)
	x.Put(0, chain)
	x.Drop(0, chain, 0)
	held := []int32{0: 1, 100: 1}
	if matchInto(x, chain, held); held[0] != 0 || held[100] != 0 || x.Len() != 0 {
		t.Errorf("%v are held, %d in all", held, x.Len())
	}
}

// What nobody sees to is bounded, and stays whole.
func TestPutOffIsBounded(t *testing.T) {
	x := NewIndex(1 << 24)
	x.piece = 3
	x.SetCap(0, 500)
	x.SetCap(1, 50)
	rng := rand.New(rand.NewPCG(1, 1))
	chains := make([][]uint64, 40)
	for i := range chains {
		chains[i] = longChain(uint64(i), rng.IntN(90))
	}
	for range 20_000 {
		u, chain := rng.IntN(2), chains[rng.IntN(len(chains))]
		switch rng.IntN(9) {
		case 0:
			x.Drop(u, chain, rng.IntN(90))
		case 1:
			x.SetCap(u, rng.IntN(500))
		case 2:
			if rng.IntN(20) == 0 {
				x.Clear(u)
			}
		case 3, 4:
			x.Put(u, chain)
		default:
			x.Work()
		}
		if len(x.jobs) > maxJobs {
			t.Fatalf("%d jobs wait, want at most %d", len(x.jobs), maxJobs)
		}
	}
	x.finish()
	held := make([]int32, 2)
	x.SetCap(0, 500)
	x.Put(0, chains[1])
	x.finish()
	if matchInto(x, chains[1], held); int(held[0]) != len(chains[1]) {
		t.Errorf("%d of %d blocks are held", held[0], len(chains[1]))
	}
	for len(x.cleared) > 0 {
		x.forget()
	}
	check(t, x)
}
