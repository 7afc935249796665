package virtual

import (
	"math"
	"time"
)

// idle is the due time of an engine that has nothing to do.
const idle = time.Duration(math.MaxInt64)

// dues is a heap of engines by the time at which each is due, those of the same
// time by number. An engine's time may change in place.
type dues struct {
	heap []due
	at   []int32 // by engine: place in heap
}

type due struct {
	at     time.Duration
	engine int32
}

func (a due) before(b due) bool {
	return a.at < b.at || a.at == b.at && a.engine < b.engine
}

// fanout of 4 makes the heap half as deep as 2 would, and children neighbours.
const fanout = 4

// add appends an engine, idle.
func (d *dues) add() {
	n := int32(len(d.heap))
	d.heap = append(d.heap, due{idle, n})
	d.at = append(d.at, n)
}

// of is an engine's time.
func (d *dues) of(engine int) time.Duration { return d.heap[d.at[engine]].at }

// set changes an engine's time.
func (d *dues) set(engine int, at time.Duration) {
	i := int(d.at[engine])
	old := d.heap[i].at
	if at == old {
		return
	}
	x := due{at, int32(engine)}
	if at < old {
		d.up(i, x)
	} else {
		d.down(i, x)
	}
}

func (d *dues) put(i int, x due) {
	d.heap[i] = x
	d.at[x.engine] = int32(i)
}

func (d *dues) up(i int, x due) {
	for i > 0 {
		parent := (i - 1) / fanout
		if !x.before(d.heap[parent]) {
			break
		}
		d.put(i, d.heap[parent])
		i = parent
	}
	d.put(i, x)
}

func (d *dues) down(i int, x due) {
	for {
		first := i*fanout + 1
		if first >= len(d.heap) {
			break
		}
		best := first
		for c := first + 1; c < min(first+fanout, len(d.heap)); c++ {
			if d.heap[c].before(d.heap[best]) {
				best = c
			}
		}
		if !d.heap[best].before(x) {
			break
		}
		d.put(i, d.heap[best])
		i = best
	}
	d.put(i, x)
}
