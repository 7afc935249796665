package workload

import "math/bits"

// numbering numbers blocks by their hash, from 0 on, in the order in which they
// are first asked for. Blocks of a content lie side by side, so what policies
// note of blocks can lie in arrays, and be walked through, where maps of hashes
// have them wait for memory at each block.
type numbering struct {
	unit   int
	bytes  bool
	hashes []uint64
	slots  []int32 // open addressing, at most half full: numbers + 1; 0 is none
}

// of returns the number of a hash. Hashes are well mixed.
func (n *numbering) of(hash uint64) int32 {
	if 2*len(n.hashes) >= len(n.slots) {
		n.slots = make([]int32, max(2*len(n.slots), 1<<10))
		for i, known := range n.hashes {
			n.slots[n.seek(known)] = int32(i + 1)
		}
	}
	at := n.seek(hash)
	if n.slots[at] == 0 {
		n.hashes = append(n.hashes, hash)
		n.slots[at] = int32(len(n.hashes))
	}
	return n.slots[at] - 1
}

// seek is the slot of a hash, or the free one for it.
func (n *numbering) seek(hash uint64) int {
	at := int(hash >> (64 - bits.TrailingZeros(uint(len(n.slots)))))
	for n.slots[at] != 0 && n.hashes[n.slots[at]-1] != hash {
		at = (at + 1) & (len(n.slots) - 1)
	}
	return at
}

// TokenNumbers returns numbers for what c.Tokens returns hashes of: the same for
// the same block of any content of the workload, and hardly more of them than
// there are blocks. Numbers of another unit have nothing to do with them.
func (w *Workload) TokenNumbers(c *Content, unit int) []int32 { return w.numbers(c, unit, false) }

// ByteNumbers is TokenNumbers in blocks of unit bytes.
func (w *Workload) ByteNumbers(c *Content, unit int) []int32 { return w.numbers(c, unit, true) }

func (w *Workload) numbers(c *Content, unit int, bytes bool) []int32 {
	known := c.chain(unit, bytes)
	if known.numbers == nil {
		n := w.numbering(unit, bytes)
		known.numbers = make([]int32, len(known.hashes))
		for i, h := range known.hashes {
			known.numbers[i] = n.of(h)
		}
	}
	return known.numbers
}

func (w *Workload) numbering(unit int, bytes bool) *numbering {
	for _, n := range w.numberings {
		if n.unit == unit && n.bytes == bytes {
			return n
		}
	}
	n := &numbering{unit: unit, bytes: bytes}
	w.numberings = append(w.numberings, n)
	return n
}
