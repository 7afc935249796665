package rivals

import "math/bits"

// blockTable finds nodes by their hash: open addressing with linear probing, of
// four bytes a place. Replays of all rivals look up billions of blocks, and a map
// has them wait for memory several times for each.
type blockTable struct {
	slots []int32 // nodes; 0 is none
	used  int
}

// home is the place where a hash is looked for first. Hashes are well mixed.
func (t *blockTable) home(hash uint64) int {
	return int(hash >> (64 - bits.TrailingZeros(uint(len(t.slots)))))
}

// find returns the node with a hash, 0 if there is none.
func (t *blockTable) find(nodes []blockNode, hash uint64) int32 {
	if t.used == 0 {
		return 0
	}
	for i := t.home(hash); ; i = (i + 1) & (len(t.slots) - 1) {
		if at := t.slots[i]; at == 0 || nodes[at].hash == hash {
			return at
		}
	}
}

// add adds a node whose hash isn't there.
func (t *blockTable) add(nodes []blockNode, at int32) {
	if 2*t.used >= len(t.slots) {
		old := t.slots
		t.slots = make([]int32, max(2*len(old), 1<<10))
		for _, known := range old {
			if known != 0 {
				t.put(nodes, known)
			}
		}
	}
	t.put(nodes, at)
	t.used++
}

func (t *blockTable) put(nodes []blockNode, at int32) {
	i := t.home(nodes[at].hash)
	for t.slots[i] != 0 {
		i = (i + 1) & (len(t.slots) - 1)
	}
	t.slots[i] = at
}

// drop takes a node out, and moves up those that were put behind it for want of
// their own place.
func (t *blockTable) drop(nodes []blockNode, at int32) {
	last := len(t.slots) - 1
	gap := t.home(nodes[at].hash)
	for t.slots[gap] != at {
		gap = (gap + 1) & last
	}
	for i := (gap + 1) & last; t.slots[i] != 0; i = (i + 1) & last {
		home := t.home(nodes[t.slots[i]].hash)
		if (i-home)&last >= (i-gap)&last {
			t.slots[gap] = t.slots[i]
			gap = i
		}
	}
	t.slots[gap] = 0
	t.used--
}
