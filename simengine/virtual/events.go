package virtual

import "time"

// Kind orders events of the same time: lower is sooner.
type Kind uint8

// Engines is the kind of the steps that end. An arrival at the very time of a
// step's end must be below, for the engine sees at a step's end all that came up
// to then. What looks at engines, as a scrape does, should be above: it then
// sees what ended up to its time.
const Engines Kind = 128

// Event is what a user scheduled. Actor and Arg are the user's own.
type Event struct {
	At    time.Duration
	Kind  Kind
	Actor int32
	Arg   uint64
}

// scheduled is an event in the heap.
type scheduled struct {
	Event
	sequence uint64
}

func (a *scheduled) before(b *scheduled) bool {
	if a.At != b.At {
		return a.At < b.At
	}
	if a.Kind != b.Kind {
		return a.Kind < b.Kind
	}
	return a.sequence < b.sequence
}

// events is a heap of what is to come, the soonest at the top.
type events struct {
	heap     []scheduled
	sequence uint64
}

func (q *events) push(e Event) {
	q.sequence++
	q.heap = append(q.heap, scheduled{e, q.sequence})
	h := q.heap
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (q *events) pop() Event {
	h := q.heap
	top := h[0].Event
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	q.heap = h
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			break
		}
		if right := down + 1; right < last && h[right].before(&h[down]) {
			down = right
		}
		if !h[down].before(&h[i]) {
			break
		}
		h[i], h[down] = h[down], h[i]
		i = down
	}
	return top
}
