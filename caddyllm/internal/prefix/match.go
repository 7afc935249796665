package prefix

import "math/bits"

// Match sets held[u] to the number of leading blocks of the chain that
// upstream u holds, for each u within held.
func (x *Index) Match(chain []uint64, held []int32) {
	if !x.moved {
		x.match(chain, held)
		return
	}
	if n := len(x.lists); len(x.held) < n {
		x.held = make([]int32, n+n/4)
	}
	x.match(chain, x.held[:len(x.lists)])
	clear(held)
	for u, row := range x.rows[:min(len(x.rows), len(held))] {
		held[u] = x.held[row]
	}
}

// match is Match by row.
func (x *Index) match(chain []uint64, held []int32) {
	clear(held)
	if len(chain) == 0 {
		return
	}
	first := place(chain[0])
	guess := len(chain)
	groups := (len(held) + groupSize - 1) / groupSize
	x.warmGroups(first, groups)
	alone := true
	for group := range groups {
		if holders := x.holders(first, group); holders != 0 {
			if alone {
				// Most that hold the first block of what is popular hold the last.
				x.warmGroups(place(chain[guess-1]), groups)
				alone = false
			}
			guess = x.bisect(chain, held, group, holders, 1, len(chain), guess)
		}
	}
}

// bisect finds how much of a chain some upstreams of a group hold, each at
// least the first low blocks and at most the first high. What many hold of a
// chain is of a few lengths, so it first tries the length that others were found
// to hold, and returns the last one found.
func (x *Index) bisect(chain []uint64, held []int32, group int, which uint64, low, high, guess int) int {
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
			x.bisect(chain, held, group, more, middle, high, guess)
		}
		which, high = which&^more, middle-1
	}
	for ; which != 0; which &= which - 1 {
		if u := group*groupSize + bits.TrailingZeros64(which); u < len(held) {
			held[u] = int32(low)
		}
	}
	return low
}
