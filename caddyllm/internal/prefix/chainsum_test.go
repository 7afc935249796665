package prefix

import (
	"math/bits"
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// Blocks that differ little must not collide: a counter at each place, in text
// and in zeros, for blocks that are whole strides and others.
func TestSumsOfBlocksThatDifferLittleAreAllDifferent(t *testing.T) {
	for _, block := range []int{64, 100, 256} {
		seen := map[uint64]bool{}
		count := 0
		for _, fill := range []byte{0, ' ', 'a', 0xff} {
			p := make([]byte, block)
			for i := range p {
				p[i] = fill
			}
			for i := range p {
				for v := range 256 {
					if byte(v) == fill {
						continue
					}
					p[i] = byte(v)
					seen[sum(p)] = true
					count++
					// A second change elsewhere: by a word, by a lane, by a stride.
					for _, d := range []int{1, 8, 16, 64} {
						if i+d < block && v < 16 {
							p[i+d] = byte(v + 1)
							if byte(v+1) != fill {
								seen[sum(p)] = true
								count++
							}
							p[i+d] = fill
						}
					}
				}
				p[i] = fill
			}
		}
		if len(seen) != count {
			t.Errorf("block of %d: %d different sums of %d blocks", block, len(seen), count)
		}
	}
}

// Swapping words, lanes or strides makes another block.
func TestSumsTellTheOrderOfWords(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 2000 {
		p := randomText(r, 256)
		before := sum(p)
		i, j := r.IntN(32), r.IntN(32)
		if i == j {
			continue
		}
		for k := range 8 {
			p[8*i+k], p[8*j+k] = p[8*j+k], p[8*i+k]
		}
		if sum(p) == before {
			t.Fatalf("words %d and %d swapped: the same sum", i, j)
		}
	}
}

// Each bit of a block turns over each bit of its sum about half the time: 4096
// tries, so 6 standard deviations are 192.
func TestEachBitOfABlockChangesEachBitOfItsSumHalfTheTime(t *testing.T) {
	const tries, far = 4096, 192
	r := rand.New(rand.NewPCG(6, 6))
	for bit := 0; bit < 8*256; bit += 37 {
		var turned [64]int
		for range tries {
			p := make([]byte, 256)
			for i := range p {
				p[i] = byte('a' + r.IntN(26))
			}
			d := sum(p)
			p[bit/8] ^= 1 << (bit % 8)
			for d ^= sum(p); d != 0; d &= d - 1 {
				turned[bits.TrailingZeros64(d)]++
			}
		}
		for i, n := range turned {
			if n < tries/2-far || n > tries/2+far {
				t.Fatalf("bit %d of a block turns bit %d of its sum over in %d of %d tries", bit, i, n, tries)
			}
		}
	}
}

func TestConstantsOfTheSumAreNoText(t *testing.T) {
	for _, k := range []uint64{k0, k1, k2, k3} {
		var p []byte
		for i := range 8 {
			p = append(p, byte(k>>(8*i)))
		}
		// Whatever stands before and behind.
		for len(p) > 0 && p[0]&0xc0 == 0x80 {
			p = p[1:]
		}
		for n := 1; n <= 3 && n < len(p); n++ {
			if c := p[len(p)-n]; c >= 0xc0 {
				p = p[:len(p)-n]
				break
			}
		}
		if utf8.Valid(p) {
			t.Errorf("%x may be a part of text", k)
		}
	}
}
