package rivals

import "math/bits"

// holdersMax is the number of upstreams up to which it pays to know of each block
// who has it: with many more, that takes more memory than what they hold.
const holdersMax = 128

// holders are, by block, the upstreams that have it, as bits.
type holders struct{ of [][holdersMax / 64]uint64 }

func (h *holders) set(block int32, up int, has bool) {
	if h == nil {
		return
	}
	for len(h.of) <= int(block) {
		h.of = append(h.of, [holdersMax / 64]uint64{})
	}
	if bit := uint64(1) << (up % 64); has {
		h.of[block][up/64] |= bit
	} else {
		h.of[block][up/64] &^= bit
	}
}

// leading tells how many of the leading blocks each upstream has, in one walk.
func (h *holders) leading(chain []int32, found []int) {
	var left [holdersMax / 64]uint64 // those that have all so far
	for up := range found {
		left[up/64] |= 1 << (up % 64)
	}
	for i, block := range chain {
		var of [holdersMax / 64]uint64
		if int(block) < len(h.of) {
			of = h.of[block]
		}
		some := uint64(0)
		for w := range left {
			for gone := left[w] &^ of[w]; gone != 0; gone &= gone - 1 {
				found[w*64+bits.TrailingZeros64(gone)] = i
			}
			left[w] &= of[w]
			some |= left[w]
		}
		if some == 0 {
			return
		}
	}
	for w, all := range left {
		for ; all != 0; all &= all - 1 {
			found[w*64+bits.TrailingZeros64(all)] = len(chain)
		}
	}
}
