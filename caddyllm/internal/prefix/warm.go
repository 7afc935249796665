package prefix

// In a table that is larger than the processor's caches, nearly all of the time
// to insert or remove a block goes by in waiting for memory, as each step needs
// what the one before has read. So what some blocks in a row will need is read
// before, all of them at once: then they wait together.

// readAhead is how many blocks wait together. Processors wait for some ten lines
// of memory at a time.
const readAhead = 16

// warm reads the buckets of blocks and the first two entries in them.
func (x *Index) warm(blocks []uint64, row int) {
	var heads [readAhead]uint32
	n := 0
	for _, h := range blocks[:min(len(blocks), readAhead)] {
		heads[n] = x.head(groupKey(place(h), row/groupSize))
		n++
	}
	x.warmChains(heads[:n])
}

// warmGroups does so for two blocks, of all groups.
func (x *Index) warmGroups(s, t spot, groups int) {
	var heads [readAhead]uint32
	n := min(groups, readAhead/2)
	for group := range n {
		heads[2*group] = x.head(groupKey(s, group))
		heads[2*group+1] = x.head(groupKey(t, group))
	}
	x.warmChains(heads[:2*n])
}

// warmOldest does so for those that make room next where a list is at its bound.
func (x *Index) warmOldest(row int) {
	var heads [readAhead]uint32
	n := 0
	for e := x.lists[row].oldest; e != none && n < readAhead; n++ {
		at := x.at(e)
		heads[n] = x.head(at.key())
		e = at.newer
	}
	x.warmChains(heads[:n])
}

func (x *Index) warmChains(heads []uint32) {
	for i, e := range heads {
		heads[i] = x.at(e).chain // none can be read, too
	}
	var read uint32
	for _, e := range heads {
		read |= x.at(e).chain
	}
	x.read = read // else the compiler would leave out the reading
}
