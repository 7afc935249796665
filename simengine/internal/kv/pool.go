// Package kv is the block pool of an engine: who holds which KV block, what the
// free ones still remember, and which of them is taken next.
//
// A block is held by any number of requests (its references), or free. A block
// may carry the hash of what is in it; it then can be found by Match, held or
// free, until it is taken for something else. Free blocks are taken in this
// order: those without a hash, last freed first; those never used; those with a
// hash, first freed first. In vLLM that is one queue with insertions at both
// ends; here it is a stack, a number and a list, so that a pool's memory grows
// with what was used of it, which matters where thousands stand side by side.
//
// Block 0 is a placeholder, as in vLLM, and never given out. A Pool is not safe
// for concurrent use.
package kv

// none ends the lists: block 0 is never in one.
const none int32 = 0

type block struct {
	hash   uint64
	refs   int32
	hashed bool

	// Neighbours in the stack (next only) or the list of free blocks.
	prev, next int32

	// Neighbours in the ring of blocks with the same hash. Requests that were
	// computed side by side bring forth such twins; vLLM keeps them apart too.
	twinPrev, twinNext int32
}

// Pool is the KV memory of one engine.
type Pool struct {
	// Evicted, if not nil, is told of each hash that is dropped because its
	// block was taken.
	Evicted func(hash uint64)

	size    int // with block 0
	caching bool

	blocks []block // as far as ever used
	byHash map[uint64]int32

	blank      int32 // top of the stack of free blocks without a hash
	oldest     int32 // free blocks with a hash, in order of release
	newest     int32
	blankCount int
	freeHashed int
	evictions  uint64
}

// New returns a pool of size blocks, block 0 included, all free. Without caching
// no block remembers anything.
func New(size int, caching bool) *Pool {
	return &Pool{size: size, caching: caching, blocks: make([]block, 1), byHash: make(map[uint64]int32)}
}

// Free is the number of blocks that no request holds.
func (p *Pool) Free() int { return p.blankCount + p.fresh() + p.freeHashed }

// Capacity is the number of blocks that can be given out.
func (p *Pool) Capacity() int { return p.size - 1 }

// Usage is the share of blocks that requests hold, 0 to 1.
func (p *Pool) Usage() float64 { return 1 - float64(p.Free())/float64(p.Capacity()) }

// Evictions counts the hashes dropped because their block was taken.
func (p *Pool) Evictions() uint64 { return p.evictions }

// fresh is the number of blocks never used.
func (p *Pool) fresh() int { return p.size - len(p.blocks) }

// Match returns how many of the leading hashes the pool has, and how many of
// these blocks are free, which is what holding them costs.
func (p *Pool) Match(hashes []uint64) (hits, free int) {
	for _, h := range hashes {
		id, ok := p.byHash[h]
		if !ok {
			break
		}
		hits++
		if p.blocks[id].refs == 0 {
			free++
		}
	}
	return hits, free
}

// Hold takes a reference to the block of each hash, all of which Match must just
// have found, and appends the blocks to held.
func (p *Pool) Hold(hashes []uint64, held []int32) []int32 {
	for _, h := range hashes {
		id := p.byHash[h]
		b := &p.blocks[id]
		if b.refs == 0 {
			p.unlink(id)
		}
		b.refs++
		held = append(held, id)
	}
	return held
}

// Sole counts the held blocks that nobody else holds.
func (p *Pool) Sole(held []int32) int {
	n := 0
	for _, id := range held {
		if p.blocks[id].refs == 1 {
			n++
		}
	}
	return n
}

// Take gives out n free blocks, with one reference and no hash, and appends them
// to held. It takes none and returns false if fewer are free.
func (p *Pool) Take(n int, held []int32) ([]int32, bool) {
	if n > p.Free() {
		return held, false
	}
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
		id = int32(len(p.blocks))
		p.blocks = append(p.blocks, block{})
	default:
		id = p.oldest
		p.unlink(id)
		if p.Evicted != nil {
			p.Evicted(p.blocks[id].hash)
		}
		p.forget(id)
		p.evictions++
	}
	p.blocks[id].refs = 1
	return id
}

// Register says what a held block will contain. It does nothing and returns
// false without caching or if the block has a hash.
func (p *Pool) Register(id int32, hash uint64) bool {
	b := &p.blocks[id]
	if !p.caching || b.hashed {
		return false
	}
	b.hash, b.hashed = hash, true
	first, ok := p.byHash[hash]
	if !ok {
		p.byHash[hash] = id
		b.twinPrev, b.twinNext = id, id
		return true
	}
	last := p.blocks[first].twinPrev
	b.twinPrev, b.twinNext = last, first
	p.blocks[last].twinNext, p.blocks[first].twinPrev = id, id
	return true
}

// Release gives one reference to each block back, the last one first: the tail
// of a prefix is of use to fewer requests than its head and shall go sooner.
func (p *Pool) Release(held []int32) {
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

// Reset forgets all hashes. It does nothing and returns false while a block is
// held.
func (p *Pool) Reset() bool {
	if p.Free() != p.Capacity() {
		return false
	}
	p.blocks = p.blocks[:1]
	clear(p.byHash)
	p.blank, p.oldest, p.newest = none, none, none
	p.blankCount, p.freeHashed = 0, 0
	return true
}

// forget takes the hash off a block.
func (p *Pool) forget(id int32) {
	b := &p.blocks[id]
	switch {
	case b.twinNext == id:
		delete(p.byHash, b.hash)
	case p.byHash[b.hash] == id:
		p.byHash[b.hash] = b.twinNext
	}
	p.blocks[b.twinPrev].twinNext = b.twinNext
	p.blocks[b.twinNext].twinPrev = b.twinPrev
	b.hash, b.hashed, b.twinPrev, b.twinNext = 0, false, none, none
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
