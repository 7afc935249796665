package prefix

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// twin is the index as one would write it without caring for time or memory:
// a list of hashes for each upstream, the most recently used first.
type twin struct {
	held    [][]uint64
	cap     []int
	evicted int
}

// put puts a chain in pieces: its head, the others from the end, and the head
// again.
func (w *twin) put(u int, chain []uint64, piece int) {
	if len(chain) <= piece {
		w.putAll(u, chain)
		return
	}
	w.putAll(u, chain[:piece])
	for to := min(len(chain), w.cap[u]); to > piece; to -= min(piece, to-piece) {
		w.putAll(u, chain[max(to-piece, piece):to])
	}
	w.putAll(u, chain[:piece])
}

func (w *twin) putAll(u int, chain []uint64) {
	if w.cap[u] == 0 {
		return
	}
	chain = chain[:min(len(chain), w.cap[u])]
	for i := len(chain) - 1; i >= 0; i-- {
		w.drop(u, chain[i:i+1])
		w.held[u] = slices.Insert(w.held[u], 0, chain[i])
		w.cut(u)
	}
}

func (w *twin) cut(u int) {
	kept := min(len(w.held[u]), w.cap[u])
	w.evicted += len(w.held[u]) - kept
	w.held[u] = w.held[u][:kept]
}

func (w *twin) drop(u int, blocks []uint64) {
	w.held[u] = slices.DeleteFunc(w.held[u], func(h uint64) bool { return slices.Contains(blocks, h) })
}

func (w *twin) match(u int, chain []uint64) int32 {
	for i, h := range chain {
		if !slices.Contains(w.held[u], h) {
			return int32(i)
		}
	}
	return int32(len(chain))
}

// matchInto sets what each upstream holds of a chain.
func matchInto(x *Index, chain []uint64, held []int32) {
	clear(held)
	for _, h := range x.Match(chain) {
		if held[h.Upstream] != 0 {
			panic("an upstream is found twice")
		}
		held[h.Upstream] = h.Blocks
	}
}

func check(t *testing.T, x *Index) {
	t.Helper()
	total := 0
	for u := range x.lists {
		n, last := 0, uint32(none)
		for e := x.lists[u].newest; e != none; e = x.at(e).older {
			if x.at(e).newer != last || x.at(e).upstream() != u || x.find(x.at(e).spot(), u).entry != e {
				t.Fatalf("upstream %d: entry %d is linked wrongly", u, e)
			}
			n, last = n+1, e
		}
		if n != x.lists[u].len || x.lists[u].oldest != last {
			t.Fatalf("upstream %d: list has %d entries and says %d", u, n, x.lists[u].len)
		}
		total += n
	}
	sets := 0
	for b := range x.bucketCount() {
		for e := *x.bucket(uint32(b)); e != none; e = x.at(e).chain {
			at := x.at(e)
			if at.owner&isSet == 0 {
				continue
			}
			sets++
			n := 0
			for u := int(at.owner&^isSet) * groupSize; u < len(x.lists) && u < int(at.owner&^isSet+1)*groupSize; u++ {
				if x.findAlone(at.spot(), u) != none {
					n++
				}
			}
			if n != bits.OnesCount64(at.members()) || n < 2 {
				t.Fatalf("a set of %d members has %d entries", bits.OnesCount64(at.members()), n)
			}
		}
	}
	if sets != x.sets {
		t.Fatalf("%d sets are chained, the index says %d", sets, x.sets)
	}
	if total != x.taken-x.sets {
		t.Fatalf("the lists hold %d entries, the index says %d", total, x.taken-x.sets)
	}
}

func testAgainstTwin(t *testing.T, seed uint64, upstreams, steps int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := NewIndex(1 << 30)
	x.atOnce = int(seed%3) * 20
	if seed%2 == 1 {
		x.piece = 1 + int(seed%29)
	}
	w := &twin{held: make([][]uint64, upstreams), cap: make([]int, upstreams)}
	setCap := func(u, n int) {
		x.SetCap(u, n)
		w.cap[u] = n
		w.cut(u)
	}
	for u := range upstreams {
		setCap(u, 20+rng.IntN(60))
	}
	// Chains share beginnings, as prompts do: a branch is chosen per block.
	chain := func() []uint64 {
		c := make([]uint64, rng.IntN(30))
		h := uint64(0)
		for i := range c {
			h = h*6364136223846793005 + uint64(rng.IntN(2)) + 1442695040888963407
			c[i] = h
		}
		return c
	}
	held := make([]int32, upstreams)
	for step := range steps {
		u, c := rng.IntN(upstreams), chain()
		switch rng.IntN(12) {
		case 0:
			setCap(u, rng.IntN(80))
		case 1:
			x.Clear(u)
			w.held[u] = nil
		case 2:
			// What is dropped is what a request alone brought.
			own := []uint64{rng.Uint64(), rng.Uint64(), rng.Uint64()}
			whole := append(c, own...)
			x.Put(u, whole)
			x.finish()
			w.put(u, whole, x.piece)
			x.Drop(u, whole, len(c))
			w.drop(u, own)
		case 3:
			// As for a request's first token and its end, and what comes between.
			shared := len(c)
			c = append(c, rng.Uint64(), rng.Uint64(), rng.Uint64())
			for range 3 {
				x.Put(u, c)
				x.finish()
				w.put(u, c, x.piece)
				switch rng.IntN(6) {
				case 0:
					setCap(u, rng.IntN(80))
				case 1:
					setCap(u, w.cap[u]/2)
					setCap(u, w.cap[u]*2)
				case 2:
					n := shared + rng.IntN(3)
					x.Drop(u, c, n)
					x.finish()
					w.drop(u, c[n:])
				case 3:
					n := rng.IntN(len(c) + 1)
					x.Put(u, c[:n])
					x.finish()
					w.put(u, c[:n], x.piece)
				}
			}
		default:
			x.Put(u, c)
			w.put(u, c, x.piece)
		}
		x.finish()
		c = chain()
		matchInto(x, c, held)
		for u := range upstreams {
			if want := w.match(u, c); held[u] != want {
				t.Fatalf("seed %d, step %d: upstream %d holds %d leading blocks, the twin says %d", seed, step, u, held[u], want)
			}
			if x.Held(u) != len(w.held[u]) {
				t.Fatalf("seed %d, step %d: upstream %d holds %d blocks, the twin says %d", seed, step, u, x.Held(u), len(w.held[u]))
			}
		}
	}
	if got := x.Evicted(); got.Cap != uint64(w.evicted) || got.Memory != 0 {
		t.Fatalf("seed %d: %+v gave way, the twin says %d", seed, got, w.evicted)
	}
	check(t, x)
}

func TestIndexAgreesWithItsTwin(t *testing.T) {
	for seed := range uint64(30) {
		testAgainstTwin(t, seed, 5, 400)
		testAgainstTwin(t, seed, 40, 100)
		testAgainstTwin(t, seed, 150, 60)
	}
}

// An upstream that restarts, or whose cache is less than was thought, holds up
// nobody for more than a millisecond: what it held is gone at once for those who
// ask, and from memory bit by bit.
func TestForgettingIsSpread(t *testing.T) {
	const blocks = 200_000
	x := NewIndex(1 << 30)
	chain := make([]uint64, blocks)
	for i := range chain {
		chain[i] = uint64(i+1) * 0x9e3779b97f4a7c15
	}
	x.SetCap(0, 2*blocks)
	x.SetCap(1, 2*blocks)
	x.piece = blocks
	x.Put(0, chain)
	held := make([]int32, 2)
	last := x.taken
	does := func(what string, most int, do func()) {
		do()
		if gone := last - x.taken; gone > most {
			t.Fatalf("%s removes %d entries in one go, want at most %d", what, gone, most)
		}
		last = x.taken
	}
	does("Clear", forgetAtOnce, func() { x.Clear(0) })
	if matchInto(x, chain[:100], held); held[0] != 0 || x.Held(0) != 0 {
		t.Fatalf("after Clear an upstream holds %d blocks, and %d of a chain", x.Held(0), held[0])
	}
	if x.Len() != 0 {
		t.Errorf("%d entries count after Clear", x.Len())
	}
	for range blocks/(forgetByPut-2) + 1 {
		does("Put", forgetByPut, func() { x.Put(1, chain[:2]) })
	}
	if x.taken != 2 {
		t.Errorf("%d entries are left, want the 2 that are held", x.taken)
	}

	x.Put(0, chain)
	last = x.taken
	does("SetCap", forgetAtOnce, func() { x.SetCap(0, 500) })
	for range blocks / (forgetByPut - 2) {
		does("Put", forgetByPut, func() { x.Put(0, chain[:1]) })
	}
	if x.Held(0) != 500 {
		t.Errorf("%d blocks are held, want 500", x.Held(0))
	}
	matchInto(x, chain[:1000], held)
	if held[0] != 500 || held[1] != 2 {
		t.Errorf("of the chain %v are held, want 500 and 2", held)
	}
	check(t, x)
}

// Rows come back: an upstream that restarts again and again needs two.
func TestClearedRowsAreUsedAgain(t *testing.T) {
	x := NewIndex(1 << 30)
	x.atOnce = 0
	chain := []uint64{1, 2, 3}
	x.SetCap(0, 10)
	for range 3 * MaxUpstreams {
		x.Put(0, chain)
		x.Clear(0)
	}
	if len(x.lists) > 3 {
		t.Errorf("%d rows for one upstream", len(x.lists))
	}
	x.SetCap(MaxUpstreams-1, 10) // as many as there may be
	x.Put(MaxUpstreams-1, chain)
	held := make([]int32, MaxUpstreams)
	if matchInto(x, chain, held); held[MaxUpstreams-1] != 3 || held[0] != 0 {
		t.Errorf("the last holds %d, the first %d, want 3 and 0", held[MaxUpstreams-1], held[0])
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { testAgainstTwin(t, seed, 1+int(seed%40), 200) })
}

// FC-47: whatever comes, the index stays within its bytes.
func TestFC47IndexIsBounded(t *testing.T) {
	const bytes = 1 << 20
	x := NewIndex(bytes)
	for u := range 3 {
		x.SetCap(u, 1<<30)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	chain := make([]uint64, 100)
	for round := range 3000 {
		for i := range chain {
			chain[i] = rng.Uint64()
		}
		x.Put(round%3, chain)
	}
	if limit := bytes / entryBytes; x.Len() > limit || x.Len() < limit*9/10 {
		t.Errorf("index of %d bytes holds %d entries, want up to %d", bytes, x.Len(), limit)
	}
	if got := len(x.entries) << slabBits; got > x.limit+slabSize {
		t.Errorf("%d entries are allocated for a limit of %d", got, x.limit)
	}
	if got, want := x.Evicted().Memory, uint64(3000*len(chain)-x.Len()); got != want {
		t.Errorf("%d entries gave way to the bound, want all %d that are gone", got, want)
	}
	// An upstream that comes late gets room too.
	x.SetCap(3, 1<<30)
	x.Put(3, chain)
	if x.Held(3) != len(chain) {
		t.Errorf("a new upstream holds %d blocks in a full index, want %d", x.Held(3), len(chain))
	}
	check(t, x)
}

func TestIndexAllocatesNothingWhenWarm(t *testing.T) {
	x := NewIndex(1 << 24)
	x.SetCap(0, 1000)
	x.SetCap(1, 1000)
	chain := make([]uint64, 128)
	held := make([]int32, 2)
	n := uint64(0)
	run := func() {
		for i := range chain {
			n++
			chain[i] = n * 0x9e3779b97f4a7c15
		}
		x.Put(int(n)%2, chain)
		matchInto(x, chain, held)
	}
	for range 50 {
		run()
	}
	if got := testing.AllocsPerRun(200, run); got != 0 {
		t.Errorf("Put and Match allocate %v times, want 0", got)
	}
}

// An entry and its bucket are all that a block of an upstream takes.
func TestBytesPerEntry(t *testing.T) {
	if got := int(unsafe.Sizeof(entry{})) + 4; got != entryBytes {
		t.Fatalf("an entry takes %d bytes, want %d", got, entryBytes)
	}
	const upstreams, each = 8, 100_000
	x := NewIndex(1 << 30)
	rng := rand.New(rand.NewPCG(3, 4))
	chain := make([]uint64, 100)
	for u := range upstreams {
		x.SetCap(u, each)
		for x.Held(u) < each {
			for i := range chain {
				chain[i] = rng.Uint64()
			}
			x.Put(u, chain)
		}
	}
	if got := float64(x.Bytes()) / float64(x.Len()); got > 24.5 {
		t.Errorf("an entry takes %.2f bytes at scale, want 24", got)
	}
}
