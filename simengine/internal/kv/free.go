package kv

// Free is the number of blocks that no request holds.
func (p *Pool) Free() int { return p.blankCount + p.fresh() + p.freeHashed - p.unpicked }

// fresh is the number of blocks never used.
func (p *Pool) fresh() int { return p.size - len(p.blocks) }

// Take gives out n free blocks, with one reference and no hash, and appends them
// to held. It takes none and returns false if fewer are free.
func (p *Pool) Take(n int, held []int32) ([]int32, bool) {
	if n > p.Free() {
		return held, false
	}
	p.pick()
	for range n {
		held = append(held, p.take())
	}
	return held, true
}

func (p *Pool) take() int32 {
	var id int32
	switch {
	case p.blank != none:
		id = p.blank
		p.blank = p.blocks[id].next
		p.blocks[id].next = none
		p.blankCount--
	case p.fresh() > 0:
		id = p.grow()
	default:
		id = p.oldest
		p.oldest = p.blocks[id].next
		p.blocks[p.oldest].prev = none // that of block 0 is of no use
		if p.oldest == none {
			p.newest = none
		}
		p.blocks[id].next = none
		p.freeHashed--
		if p.Evicted != nil {
			p.Evicted(p.blocks[id].hash)
		}
		p.forget(id)
		p.evictions++
	}
	p.blocks[id].refs = 1
	return id
}

// grow makes one more block.
func (p *Pool) grow() int32 {
	id := len(p.blocks)
	if id == cap(p.blocks) {
		larger := make([]block, id, min(p.size, 2*id))
		copy(larger, p.blocks)
		p.blocks = larger
	}
	p.blocks = append(p.blocks, block{})
	if p.siblings != nil {
		p.siblings = append(p.siblings, siblings{})
	}
	return int32(id)
}

// fetch reads the blocks. The loops that change them decide as they go, so that
// the processor waits for memory at each one; here it can ask for all at once.
// It panics if one isn't held.
func (p *Pool) fetch(held []int32) {
	refs := int32(1)
	for _, id := range held {
		refs = min(refs, p.blocks[id].refs)
	}
	if refs < 1 {
		panic("kv: release of a block that nobody holds")
	}
}

// Release gives one reference to each block back, the last one first: the tail
// of a prefix is of use to fewer requests than its head and shall go sooner.
func (p *Pool) Release(held []int32) {
	p.pick()
	p.fetch(held)
	for i := len(held) - 1; i >= 0; i-- {
		id := held[i]
		b := &p.blocks[id]
		if b.refs--; b.refs > 0 {
			continue
		}
		if b.hashed {
			p.append(id)
		} else {
			b.next = p.blank
			p.blank = id
			p.blankCount++
		}
	}
}

// append puts a block at the young end of the list of free ones with a hash.
func (p *Pool) append(id int32) {
	b := &p.blocks[id]
	b.prev, b.next = p.newest, none
	if p.newest == none {
		p.oldest = id
	} else {
		p.blocks[p.newest].next = id
	}
	p.newest = id
	p.freeHashed++
}

// unlink takes a block out of that list.
func (p *Pool) unlink(id int32) {
	b := &p.blocks[id]
	if b.prev == none {
		p.oldest = b.next
	} else {
		p.blocks[b.prev].next = b.next
	}
	if b.next == none {
		p.newest = b.prev
	} else {
		p.blocks[b.next].prev = b.prev
	}
	b.prev, b.next = none, none
	p.freeHashed--
}
