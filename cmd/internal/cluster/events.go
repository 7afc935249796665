package cluster

import "time"

// event is something that happens at a time; those of one time happen in the
// order in which they were planned.
type event struct {
	at    time.Duration
	order uint64
	kind  kind
	a, b  int32
}

type kind uint8

const (
	arrive  kind = iota // job a comes to its proxy
	scrape              // proxy a looks at engine b
	deliver             // the page that proxy a took of engine b is read
	health              // all proxies look who answers
	change              // step a of the scenario
)

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// agenda is a heap of events.
type agenda struct {
	heap  []event
	order uint64
}

func (g *agenda) plan(at time.Duration, k kind, a, b int) {
	g.order++
	g.heap = append(g.heap, event{at, g.order, k, int32(a), int32(b)})
	for i := len(g.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !g.heap[i].before(&g.heap[parent]) {
			break
		}
		g.heap[i], g.heap[parent] = g.heap[parent], g.heap[i]
		i = parent
	}
}

func (g *agenda) pop() event {
	top := g.heap[0]
	last := len(g.heap) - 1
	g.heap[0] = g.heap[last]
	g.heap = g.heap[:last]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && g.heap[child].before(&g.heap[least]) {
				least = child
			}
		}
		if least == i {
			return top
		}
		g.heap[i], g.heap[least] = g.heap[least], g.heap[i]
		i = least
	}
}

// clocks is a tournament of the engines' next steps: its root is the engine
// that is due first, the lower number among equals.
type clocks struct {
	due  []time.Duration // by engine; idle for never
	tree []int32         // winners; leaves begin at size
	size int
}

const idle = time.Duration(1<<63 - 1)

func newClocks(n int) *clocks {
	c := &clocks{size: 1}
	for c.size < n {
		c.size *= 2
	}
	c.due = make([]time.Duration, c.size)
	c.tree = make([]int32, 2*c.size)
	for i := range c.due {
		c.due[i] = idle
		c.tree[c.size+i] = int32(i)
	}
	for i := c.size - 1; i > 0; i-- {
		c.tree[i] = c.tree[2*i]
	}
	return c
}

func (c *clocks) set(engine int, at time.Duration) {
	c.due[engine] = at
	for i := (c.size + engine) / 2; i > 0; i /= 2 {
		a, b := c.tree[2*i], c.tree[2*i+1]
		if c.due[b] < c.due[a] {
			a = b
		}
		c.tree[i] = a
	}
}

func (c *clocks) first() (engine int, at time.Duration) {
	i := c.tree[1]
	return int(i), c.due[i]
}
