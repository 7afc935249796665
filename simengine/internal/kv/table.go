package kv

// table finds blocks by hash: open addressing with linear probing, at most half
// full, and no tombstones. A slot is 8 bytes and tells its home, so that probing
// and deleting hardly ever touch a block that isn't the one.
type table struct {
	slots []slot // a power of two, or none yet
	shift uint   // 64 less the bits of an index
	count int
}

type slot struct {
	tag uint32 // upper half of the mixed hash
	id  int32  // none if free
}

// mix spreads hashes of any quality: callers may number their blocks.
func mix(hash uint64) uint64 {
	hash ^= hash >> 32
	return hash * 0x9e3779b97f4a7c15 // 2^64 over the golden ratio
}

func (s slot) home(shift uint) int { return int(s.tag >> (shift - 32)) }

// find returns the slot and the block of the hash, none if there is none.
func (t *table) find(blocks []block, hash uint64) (at int, id int32) {
	if len(t.slots) == 0 {
		return 0, none
	}
	m := mix(hash)
	mask := len(t.slots) - 1
	tag := uint32(m >> 32)
	for at = int(m >> t.shift); ; at = (at + 1) & mask {
		s := t.slots[at&mask]
		if s.id == none || s.tag == tag && blocks[s.id].hash == hash {
			return at, s.id
		}
	}
}

// put adds a block whose hash isn't there.
func (t *table) put(hash uint64, id int32) {
	t.reserve(t.count + 1)
	m := mix(hash)
	mask := len(t.slots) - 1
	at := int(m >> t.shift)
	for t.slots[at&mask].id != none {
		at++
	}
	t.slots[at&mask] = slot{uint32(m >> 32), id}
	t.count++
}

// seek returns the slot of the block, which must have one.
func (t *table) seek(hash uint64, id int32) int {
	mask := len(t.slots) - 1
	at := int(mix(hash) >> t.shift)
	for t.slots[at&mask].id != id {
		at++
	}
	return at & mask
}

// replace makes the hash of the block that of another, if the table has it under
// this block.
func (t *table) replace(hash uint64, id, by int32) {
	mask := len(t.slots) - 1
	for at := int(mix(hash) >> t.shift); ; at++ {
		s := &t.slots[at&mask]
		if s.id == id {
			s.id = by
			return
		}
		if s.id == none {
			return
		}
	}
}

// drop frees the slot of the block and moves those behind it nearer to their
// homes.
func (t *table) drop(hash uint64, id int32) {
	mask := len(t.slots) - 1
	hole := t.seek(hash, id)
	for at := hole; ; {
		at = (at + 1) & mask
		s := t.slots[at]
		if s.id == none {
			break
		}
		// s may move to the hole unless its home lies behind it.
		if (at-s.home(t.shift))&mask >= (at-hole)&mask {
			t.slots[hole] = s
			hole = at
		}
	}
	t.slots[hole] = slot{}
	t.count--
}

const slotsMin = 64

// reserve makes room for n hashes, at most half full.
func (t *table) reserve(n int) {
	if 2*n <= len(t.slots) {
		return
	}
	old := t.slots
	size := slotsMin
	for size < 2*n {
		size *= 2
	}
	t.slots = make([]slot, size)
	t.shift = 64
	for 1<<(64-t.shift) < size {
		t.shift--
	}
	mask := size - 1
	for _, s := range old {
		if s.id == none {
			continue
		}
		at := s.home(t.shift)
		for t.slots[at].id != none {
			at = (at + 1) & mask
		}
		t.slots[at] = s
	}
}

func (t *table) clear() {
	clear(t.slots)
	t.count = 0
}
