package prefix

import "math/bits"

// groupSize is how many upstreams share the bucket of a block.
const groupSize = 16

// Match sets held[u] to the number of leading blocks of the chain that
// upstream u holds, for each u within held.
func (x *Index) Match(chain []uint64, held []int32) {
	clear(held)
	if len(chain) == 0 {
		return
	}
	for group := uint32(0); int(group)*groupSize < len(held); group++ {
		if holders := x.holders(chain[0], group); holders != 0 {
			x.bisect(chain, held, group, holders, 1, len(chain))
		}
	}
}

// bisect finds how much of a chain some upstreams of a group hold, each at
// least the first low blocks and at most the first high.
func (x *Index) bisect(chain []uint64, held []int32, group uint32, which uint16, low, high int) {
	for low < high && which != 0 {
		middle := (low + high + 1) / 2
		more := which & x.holders(chain[middle-1], group)
		if more == which {
			low = middle
			continue
		}
		if more != 0 {
			x.bisect(chain, held, group, more, middle, high)
		}
		which, high = which&^more, middle-1
	}
	for ; which != 0; which &= which - 1 {
		if u := int(group)*groupSize + bits.TrailingZeros16(which); u < len(held) {
			held[u] = int32(low)
		}
	}
}

// holders is the set of upstreams of a group that hold a block.
func (x *Index) holders(hash uint64, group uint32) uint16 {
	var set uint16
	for e := x.head(key(hash, group)); e != none; {
		at := x.at(e)
		if at.hash == hash && at.upstream/groupSize == group {
			set |= 1 << (at.upstream % groupSize)
		}
		e = at.chain
	}
	return set
}
