package kv

import "fmt"

// Check walks the whole pool and tells the first thing that doesn't fit
// together: references against held, free blocks against their lists, hashes
// against their blocks. Held are the blocks of every request. It is for tests.
func (p *Pool) Check(held [][]int32) error {
	refs := make([]int32, len(p.blocks))
	for _, blocks := range held {
		for _, id := range blocks {
			if id <= none || int(id) >= len(p.blocks) {
				return fmt.Errorf("block %d is held but was never given out", id)
			}
			refs[id]++
		}
	}
	picked := 0
	for id := p.lent; id != none; id = p.blocks[id].next {
		refs[id]++
		picked++
	}
	if picked != p.picked {
		return fmt.Errorf("%d blocks are picked to be lent, counted as %d", picked, p.picked)
	}
	free, err := p.checkFree()
	if err != nil {
		return err
	}
	hashed := 0
	for id := 1; id < len(p.blocks); id++ {
		b := &p.blocks[id]
		if b.refs != refs[id] {
			return fmt.Errorf("block %d has %d references, is held %d times", id, b.refs, refs[id])
		}
		if free[id] != (b.refs == 0) {
			return fmt.Errorf("block %d has %d references, is listed as free: %v", id, b.refs, free[id])
		}
		if !b.hashed {
			continue
		}
		hashed++
		if !p.caching {
			return fmt.Errorf("block %d has a hash in a pool without caching", id)
		}
	}
	return p.checkHashes(hashed)
}

func (p *Pool) checkFree() ([]bool, error) {
	free := make([]bool, len(p.blocks))
	n := 0
	for id := p.blank; id != none; id = p.blocks[id].next {
		if free[id] || p.blocks[id].hashed {
			return nil, fmt.Errorf("block %d is twice or with a hash among the blank ones", id)
		}
		free[id] = true
		n++
	}
	if n != p.blankCount {
		return nil, fmt.Errorf("%d blank blocks, counted as %d", n, p.blankCount)
	}
	n = 0
	prev := none
	for id := p.oldest; id != none; id = p.blocks[id].next {
		b := &p.blocks[id]
		if free[id] || !b.hashed || b.prev != prev {
			return nil, fmt.Errorf("block %d is twice, out of place or without a hash among those that remember", id)
		}
		free[id] = true
		prev = id
		n++
	}
	if n != p.freeHashed || prev != p.newest {
		return nil, fmt.Errorf("%d free blocks with a hash ending in %d, counted as %d ending in %d", n, prev, p.freeHashed, p.newest)
	}
	return free, nil
}

func (p *Pool) checkHashes(want int) error {
	n, slots := 0, 0
	for at, s := range p.table.slots {
		if s.id == none {
			continue
		}
		slots++
		if found, id := p.table.find(p.blocks, p.blocks[s.id].hash); found != at || id != s.id {
			return fmt.Errorf("block %d is in slot %d, its hash is found in %d with %d", s.id, at, found, id)
		}
		if p.blocks[s.id].parent != none {
			return fmt.Errorf("block %d is in the table and has a parent", s.id)
		}
		ring, err := p.checkRing(s.id)
		if err != nil {
			return err
		}
		n += ring
	}
	for id := int32(1); int(id) < len(p.blocks); id++ {
		b := &p.blocks[id]
		if b.child != none && (p.blocks[b.child].parent != id || !b.hashed || p.hasSiblings(id)) {
			return fmt.Errorf("block %d has a child that isn't its own, or may have none", id)
		}
		if b.parent == none {
			continue
		}
		if n++; p.blocks[b.parent].child != id || !b.hashed || p.hasSiblings(id) {
			return fmt.Errorf("block %d has a parent that isn't its own, or may have none", id)
		}
	}
	if n != want || slots != p.table.count {
		return fmt.Errorf("%d blocks have a hash, %d are found by it; %d slots are used, counted as %d", want, n, slots, p.table.count)
	}
	return nil
}

// checkRing counts the blocks with the hash of one in the table.
func (p *Pool) checkRing(eldest int32) (n int, err error) {
	for id := eldest; ; {
		b, next := &p.blocks[id], eldest
		if p.hasSiblings(id) {
			if next = p.siblings[id].next; p.siblings[next].prev != id {
				return n, fmt.Errorf("block %d isn't its sibling's sibling", id)
			}
		}
		if !b.hashed || b.hash != p.blocks[eldest].hash {
			return n, fmt.Errorf("block %d is found by a hash that it doesn't have", id)
		}
		if n++; n > len(p.blocks) {
			return n, fmt.Errorf("the siblings of block %d have no end", eldest)
		}
		if id = next; id == eldest {
			return n, nil
		}
	}
}
