package prefix

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// plainChain is the twin: it has the whole text and cuts it by slicing.
func plainChain(text []byte, block int, seed uint64) []uint64 {
	var out []uint64
	prev := uint64(0)
	for len(text) >= block && len(out) < MaxBlocks {
		prev = link(prev, wyhash(text[:block]))
		out = append(out, scramble(prev^keyOf(seed)))
		text = text[block:]
	}
	return out
}

func randomText(r *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

func TestChainEqualsTheTextCutIntoBlocksHoweverItIsWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, block := range []int{64, 100, 256, 4096} {
		for range 50 {
			text := randomText(r, r.IntN(20_000))
			var c Chain
			c.Reset(nil, block)
			for rest := text; len(rest) > 0; {
				n := min(len(rest), 1+r.IntN(3*block))
				c.Write(rest[:n])
				rest = rest[n:]
			}
			seed := r.Uint64()
			got, want := c.Seal(seed), plainChain(text, block, seed)
			if !slices.Equal(got, want) {
				t.Fatalf("Chain(%d bytes, block %d) = %d hashes %x, want %d hashes %x", len(text), block, len(got), got, len(want), want)
			}
			if c.Bytes() != len(text) {
				t.Fatalf("Bytes() = %d, want %d", c.Bytes(), len(text))
			}
		}
	}
}

func chainOf(text []byte, block int, seed uint64) []uint64 {
	var c Chain
	c.Reset(nil, block)
	c.Write(text)
	return c.Seal(seed)
}

func TestFC31AChangedByteChangesItsBlockAndAllBehindItAndNoneBefore(t *testing.T) {
	text := randomText(rand.New(rand.NewPCG(3, 4)), 64*20)
	before := chainOf(text, 64, 7)
	for at := range text {
		text[at] ^= 1
		after := chainOf(text, 64, 7)
		text[at] ^= 1
		for i := range before {
			if same := before[i] == after[i]; same != (i < at/64) {
				t.Fatalf("byte %d changed: hash %d same = %v, want %v", at, i, same, i < at/64)
			}
		}
	}
}

func TestSeedsShareNoHash(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789abcdef"), 100)
	seen := map[uint64]uint64{}
	for seed := range uint64(50) {
		for _, h := range chainOf(text, 64, seed) {
			if other, ok := seen[h]; ok {
				t.Fatalf("hash %x under seed %d and under seed %d", h, seed, other)
			}
			seen[h] = seed
		}
	}
}

func TestFC27TextsShorterThanABlockHaveNoHash(t *testing.T) {
	for n := range 64 {
		if got := chainOf(make([]byte, n), 64, 1); len(got) != 0 {
			t.Errorf("Chain(%d bytes) = %d hashes, want 0", n, len(got))
		}
	}
	if got := chainOf(make([]byte, 64), 64, 1); len(got) != 1 {
		t.Errorf("Chain(one block) = %d hashes, want 1", len(got))
	}
}

func TestChainBringsBlockSizesIntoBounds(t *testing.T) {
	for _, x := range []struct{ block, want int }{{0, DefaultBlock}, {-1, MinBlock}, {1, MinBlock}, {1 << 40, MaxBlock}, {300, 300}} {
		var c Chain
		c.Reset(nil, x.block)
		if c.block != x.want {
			t.Errorf("Reset(%d): blocks of %d bytes, want %d", x.block, c.block, x.want)
		}
	}
}

func TestChainStopsGrowingAtItsBound(t *testing.T) {
	text := make([]byte, MinBlock*MaxBlocks+1000)
	var c Chain
	c.Reset(nil, MinBlock)
	c.Write(text)
	if got := len(c.Seal(0)); got != MaxBlocks || c.Bytes() != len(text) {
		t.Errorf("%d hashes over %d bytes, want %d over %d", got, c.Bytes(), MaxBlocks, len(text))
	}
}

func TestChainAllocatesNothingWhereThereIsRoom(t *testing.T) {
	text := make([]byte, 32<<10)
	dst := make([]uint64, 0, 1000)
	var c Chain
	if n := testing.AllocsPerRun(100, func() {
		c.Reset(dst, 256)
		c.Write(text)
		dst = c.Seal(1)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkChain32KB(b *testing.B) {
	text := make([]byte, 32<<10)
	var dst []uint64
	var c Chain
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		c.Reset(dst, 256)
		c.Write(text)
		dst = c.Seal(1)
	}
}
