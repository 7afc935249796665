package prefix

import "math/bits"

// Holding is how many leading blocks of a chain an upstream holds.
type Holding struct {
	Upstream, Blocks int32
}

// Match finds the upstreams that hold leading blocks of a chain, in no order. What
// it returns is valid until the next call.
func (x *Index) Match(chain []uint64) []Holding {
	x.found = x.found[:0]
	if len(chain) == 0 {
		return nil
	}
	first := place(chain[0])
	guess := len(chain)
	groups := (len(x.lists) + groupSize - 1) / groupSize
	if groups > 1 { // else there is nothing to wait for together
		// Most that hold the first block of what is popular hold the last.
		x.warmGroups(first, place(chain[guess-1]), groups)
	}
	for group := range groups {
		if holders := x.holders(first, group); holders != 0 {
			guess = x.bisect(chain, group, holders, 1, len(chain), guess)
		}
	}
	return x.found
}

// bisect finds how much of a chain some upstreams of a group hold, each at
// least the first low blocks and at most the first high. What many hold of a
// chain is of a few lengths, so it first tries the length that others were found
// to hold, and returns the last one found.
func (x *Index) bisect(chain []uint64, group int, which uint64, low, high, guess int) int {
	for tries := 0; low < high && which != 0; {
		middle := (low + high + 1) / 2
		if tries < 2 && low < guess && guess <= high {
			// That length, and then that it is no more.
			middle = guess
			guess++
			tries++
		}
		more := which & x.holders(place(chain[middle-1]), group)
		if more == which {
			low = middle
			continue
		}
		if more != 0 {
			x.bisect(chain, group, more, middle, high, guess)
		}
		which, high = which&^more, middle-1
	}
	for ; which != 0; which &= which - 1 {
		if owner := x.owners[group*groupSize+bits.TrailingZeros64(which)]; owner != nobody {
			x.found = append(x.found, Holding{owner, int32(low)})
		}
	}
	return low
}
