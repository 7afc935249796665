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
	n := 0
	for hash, first := range p.byHash {
		id := first
		for {
			b := &p.blocks[id]
			if !b.hashed || b.hash != hash || p.blocks[b.twinNext].twinPrev != id {
				return fmt.Errorf("block %d is found by a hash that it doesn't have", id)
			}
			if n++; n > want {
				return fmt.Errorf("more than %d blocks are found by hash", want)
			}
			if id = b.twinNext; id == first {
				break
			}
		}
	}
	if n != want {
		return fmt.Errorf("%d blocks have a hash, %d are found by it", want, n)
	}
	return nil
}
