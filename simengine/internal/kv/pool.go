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
// Hashes are chained: each stands for all blocks before it too. So a block is
// mostly found from the one before it, which remembers who followed it, and the
// table of hashes holds only what can't be found that way: first blocks, where
// prefixes part, and the rare rest. A request's blocks lie side by side, so
// matching, taking and releasing them walks through memory in order.
//
// Requests hold chains from the beginning, and give the tail back first. So a
// hash is never there without the one before it, and what a block knows of who
// followed it is all there is: mostly a miss too is told without the table.
//
// There are 32 bytes for a block, and few for the table.
//
// Block 0 is a placeholder, as in vLLM, and never given out. A Pool is not safe
// for concurrent use.
package kv

// none ends the lists: block 0 is never in one.
const none int32 = 0

type block struct {
	hash uint64

	// Neighbours in the stack (next only) or the list of free blocks.
	prev, next int32

	// The block that follows this one in a chain and is in no table, and the
	// other way round. Neither it nor the one before has siblings.
	child, parent int32

	refs     int32
	hashed   bool
	branched bool // something that follows it may be in the table
	tip      bool // its holder will tell later what follows; see Tip
}

// Pool is the KV memory of one engine.
type Pool struct {
	// Evicted, if not nil, is told of each hash that is dropped because its
	// block was taken.
	Evicted func(hash uint64)

	size    int // with block 0
	caching bool

	blocks   []block // as far as ever used
	table    table
	orphans  bool       // a hash may be there without the one before it, though it shouldn't
	siblings []siblings // as long as blocks, once there were some

	blank      int32 // top of the stack of free blocks without a hash
	oldest     int32 // free blocks with a hash, in order of release
	newest     int32
	blankCount int
	freeHashed int
	evictions  uint64

	// Blocks that are lent: so many of them are still to be picked, the others
	// are in a stack.
	unpicked int
	lent     int32
	picked   int

	disturbed int32 // a tip that got a sibling; none if none did
}

// atOnce is how many blocks get their memory, of 1 MiB, in one piece. The system
// hands it out page by page, as it is used.
const atOnce = 1 << 15

// New returns a pool of size blocks, block 0 included, all free. Without caching
// no block remembers anything.
func New(size int, caching bool) *Pool {
	return &Pool{size: size, caching: caching, blocks: make([]block, 1, min(size, atOnce))}
}

// Capacity is the number of blocks that can be given out.
func (p *Pool) Capacity() int { return p.size - 1 }

// Caching tells whether blocks remember.
func (p *Pool) Caching() bool { return p.caching }

// Evictions counts the hashes dropped because their block was taken.
func (p *Pool) Evictions() uint64 {
	return p.evictions + uint64(max(0, p.unpicked-p.blankCount-p.fresh()))
}

// Match appends to found the blocks of the leading hashes that the pool has, and
// returns how many of them are free, which is what holding them costs. The
// hashes begin a chain, or continue that of the blocks in found.
func (p *Pool) Match(hashes []uint64, found []int32) (_ []int32, free int) {
	p.pick()
	id := none
	if n := len(found); n > 0 {
		id = found[n-1]
	}
	for _, h := range hashes {
		if id = p.find(id, h); id == none {
			break
		}
		if p.blocks[id].refs == 0 {
			free++
		}
		found = append(found, id)
	}
	return found, free
}

// find returns the eldest block of a hash that comes after that of block before,
// none at the beginning.
func (p *Pool) find(before int32, hash uint64) int32 {
	if before != none {
		if id := p.blocks[before].child; id != none && p.blocks[id].hash == hash {
			return id
		}
		if p.knows(before) {
			return none
		}
	}
	_, id := p.table.find(p.blocks, hash)
	return id
}

// Hold takes a reference to each of the blocks, all of which Match must just
// have found.
func (p *Pool) Hold(found []int32) {
	for _, id := range found {
		b := &p.blocks[id]
		if b.refs == 0 {
			p.unlink(id)
		}
		b.refs++
	}
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

// Register says what a held block will contain, after block before, which has a
// hash, or none (0) at the beginning of a chain. It does nothing and returns
// false without caching or if the block has a hash.
func (p *Pool) Register(before, id int32, hash uint64) bool {
	b := &p.blocks[id]
	if !p.caching || b.hashed {
		return false
	}
	b.hash, b.hashed = hash, true
	if before != none {
		up := &p.blocks[before]
		if up.child == none && p.knows(before) { // nothing follows it yet
			up.child, b.parent = id, before
			return true
		}
	}
	switch eldest := p.find(before, hash); {
	case eldest != none:
		p.link(eldest, id)
	case before != none && p.blocks[before].hashed && p.blocks[before].child == none && !p.hasSiblings(before):
		p.blocks[before].child, b.parent = id, before
	default:
		if before != none {
			p.blocks[before].branched = true
		}
		p.tabulate(id)
	}
	return true
}

// knows tells whether all that follows a block is what it knows itself.
func (p *Pool) knows(id int32) bool {
	b := &p.blocks[id]
	return b.hashed && !b.branched && !p.orphans && !p.hasSiblings(id)
}

// tabulate puts a block into the table that is not found from its parent, or
// won't be any more.
func (p *Pool) tabulate(id int32) {
	b := &p.blocks[id]
	if b.parent != none {
		up := &p.blocks[b.parent]
		up.child, up.branched = none, true
		b.parent = none
	}
	p.table.put(b.hash, id)
}

// Reset forgets all hashes. It does nothing and returns false while a block is
// held.
func (p *Pool) Reset() bool {
	if p.Free() != p.Capacity() {
		return false
	}
	p.blocks = p.blocks[:1]
	p.table.clear()
	p.siblings, p.orphans = nil, false
	p.blank, p.oldest, p.newest = none, none, none
	p.blankCount, p.freeHashed = 0, 0
	return true
}

// forget takes the hash off a block.
func (p *Pool) forget(id int32) {
	b := &p.blocks[id]
	if b.child != none {
		p.tabulate(b.child)
		p.orphans = true
	}
	switch next := p.unlinkSibling(id); {
	case next != none:
		p.table.replace(b.hash, id, next)
	case b.parent != none:
		p.blocks[b.parent].child = none
		b.parent = none
	default:
		p.table.drop(b.hash, id)
	}
	b.hash, b.hashed, b.branched = 0, false, false
}
