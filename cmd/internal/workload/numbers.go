package workload

// numbering numbers blocks by their hash, from 0 on, in the order in which they
// are first asked for. Blocks of a content lie side by side, so what policies
// note of blocks can lie in arrays, and be walked through, where maps of hashes
// have them wait for memory at each block.
//
// Most blocks follow the one with the number before theirs and need no map. As
// hashes are chained, who has a block has those before it; so what is behind one
// that is new is new too.
type numbering struct {
	unit   int
	bytes  bool
	hashes []uint64
	others map[uint64]int32 // first blocks, and those where chains part
}

// add appends the numbers of a chain.
func (n *numbering) add(chain []uint64, to []int32) []int32 {
	at := int32(-1)
	for i, h := range chain {
		if next := int(at) + 1; at >= 0 && next < len(n.hashes) && n.hashes[next] == h {
			at++
		} else if known, ok := n.others[h]; ok {
			at = known
		} else {
			n.others[h] = int32(len(n.hashes))
			for _, h := range chain[i:] {
				to = append(to, int32(len(n.hashes)))
				n.hashes = append(n.hashes, h)
			}
			break
		}
		to = append(to, at)
	}
	return to
}

// TokenNumbers returns numbers for what c.Tokens returns hashes of: the same for
// the same block of any content of the workload, and no more of them than there
// are blocks. Numbers of another unit have nothing to do with them.
func (w *Workload) TokenNumbers(c *Content, unit int) []int32 { return w.numbers(c, unit, false) }

// ByteNumbers is TokenNumbers in blocks of unit bytes.
func (w *Workload) ByteNumbers(c *Content, unit int) []int32 { return w.numbers(c, unit, true) }

func (w *Workload) numbers(c *Content, unit int, bytes bool) []int32 {
	known := c.chain(unit, bytes)
	if known.numbers == nil {
		known.numbers = w.numbering(unit, bytes).add(known.hashes, make([]int32, 0, len(known.hashes)))
	}
	return known.numbers
}

func (w *Workload) numbering(unit int, bytes bool) *numbering {
	for _, n := range w.numberings {
		if n.unit == unit && n.bytes == bytes {
			return n
		}
	}
	n := &numbering{unit: unit, bytes: bytes, others: make(map[uint64]int32)}
	w.numberings = append(w.numberings, n)
	return n
}
