package kv

import "slices"

// twin is the pool told simply: one queue of free blocks, scanned from end to
// end for everything.
type twin struct {
	caching bool
	queue   []int // free blocks, next to be taken first
	refs    []int
	hash    []uint64 // 0 for none
	age     []int    // when the hash was given; the earliest of equals is found
	now     int
}

func newTwin(size int, caching bool) *twin {
	w := &twin{caching: caching, refs: make([]int, size), hash: make([]uint64, size), age: make([]int, size)}
	for id := 1; id < size; id++ {
		w.queue = append(w.queue, id)
	}
	return w
}

func (w *twin) find(h uint64) int {
	best := 0
	for id, x := range w.hash {
		if id > 0 && x == h && (best == 0 || w.age[id] < w.age[best]) {
			best = id
		}
	}
	return best
}

func (w *twin) match(hashes []uint64) (hits, free int) {
	for _, h := range hashes {
		id := w.find(h)
		if id == 0 {
			break
		}
		hits++
		if w.refs[id] == 0 {
			free++
		}
	}
	return hits, free
}

func (w *twin) hold(hashes []uint64) (held []int32) {
	for _, h := range hashes {
		id := w.find(h)
		if i := slices.Index(w.queue, id); i >= 0 {
			w.queue = slices.Delete(w.queue, i, i+1)
		}
		w.refs[id]++
		held = append(held, int32(id))
	}
	return held
}

func (w *twin) take(n int) ([]int32, bool) {
	if n > len(w.queue) {
		return nil, false
	}
	var held []int32
	for range n {
		id := w.queue[0]
		w.queue = w.queue[1:]
		w.hash[id] = 0
		w.refs[id] = 1
		held = append(held, int32(id))
	}
	return held, true
}

func (w *twin) register(id int32, h uint64) {
	if w.caching && w.hash[id] == 0 {
		w.now++
		w.hash[id], w.age[id] = h, w.now
	}
}

func (w *twin) release(held []int32) {
	for _, id := range slices.Backward(held) {
		if w.refs[id]--; w.refs[id] > 0 {
			continue
		}
		if w.hash[id] == 0 {
			w.queue = slices.Insert(w.queue, 0, int(id))
		} else {
			w.queue = append(w.queue, int(id))
		}
	}
}

func (w *twin) reset() bool {
	if len(w.queue) != len(w.refs)-1 {
		return false
	}
	*w = *newTwin(len(w.refs), w.caching)
	return true
}
