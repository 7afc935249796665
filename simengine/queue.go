package simengine

import "slices"

// queue holds the waiting requests. Its head is at from, so that taking it
// moves nothing, and neither does putting a preempted request back.
type queue struct {
	items []*sequence
	from  int
}

func (q *queue) len() int { return len(q.items) - q.from }

func (q *queue) all() []*sequence { return q.items[q.from:] }

func (q *queue) at(i int) *sequence { return q.items[q.from+i] }

func (q *queue) pushBack(s *sequence) {
	// Half of a slice may be consumed room; then it is worth moving.
	if q.from > 64 && q.from > len(q.items)/2 {
		q.items = slices.Delete(q.items, 0, q.from)
		q.from = 0
	}
	q.items = append(q.items, s)
}

func (q *queue) pushFront(s *sequence) {
	if q.from == 0 {
		q.items = slices.Insert(q.items, 0, s)
		return
	}
	q.from--
	q.items[q.from] = s
}

// insert keeps the queue in order of less.
func (q *queue) insert(s *sequence, less func(a, b *sequence) int) {
	i, _ := slices.BinarySearchFunc(q.all(), s, less)
	if i == 0 {
		q.pushFront(s)
		return
	}
	q.items = slices.Insert(q.items, q.from+i, s)
}

// take takes out the i-th; those before it, of which there are few, move.
func (q *queue) take(i int) {
	copy(q.items[q.from+1:], q.items[q.from:q.from+i])
	q.items[q.from] = nil
	q.from++
	if q.from == len(q.items) {
		q.items, q.from = q.items[:0], 0
	}
}

// drop removes those that match, in one pass.
func (q *queue) drop(match func(*sequence) bool) {
	q.items = slices.Delete(q.items, 0, q.from)
	q.from = 0
	q.items = slices.DeleteFunc(q.items, match)
}
