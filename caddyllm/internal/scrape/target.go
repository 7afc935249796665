package scrape

import (
	"container/heap"
	"slices"
	"time"
)

// target is one upstream. It is in a queue unless a scrape of it is running.
type target struct {
	id      string
	regs    []registration // oldest owner first; the last one's fetch is used
	due     time.Time
	fails   int // scrapes failed since the last good one
	current *attempt
	queued  bool
	index   int // in its queue
}

type registration struct {
	owner    any
	interval time.Duration
	fetch    Fetch
	until    time.Time // zero: until dropped
}

func (t *target) class() int {
	if t.fails > 0 {
		return failing
	}
	return healthy
}

func (t *target) interval() time.Duration {
	shortest := t.regs[0].interval
	for _, r := range t.regs[1:] {
		shortest = min(shortest, r.interval)
	}
	return shortest
}

// Set has the upstream id scraped each interval by f, in the name of owner, a
// pointer that tells registrations apart. The first scrape is due at once. If
// several owners register an upstream, it is scraped at the shortest of their
// intervals by the fetch of the owner that came last. An owner that registers
// an upstream again changes what it asked for. An expiry above 0 ends the
// registration when it isn't renewed for so long. An interval of 0 or less
// means 1s, and one below 50ms means 50ms.
func (p *Poller) Set(owner any, id string, interval, expiry time.Duration, f Fetch) {
	if interval <= 0 {
		interval = defaultInterval
	}
	r := registration{owner: owner, interval: max(interval, minInterval), fetch: f}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if expiry > 0 {
		r.until = now.Add(expiry)
	}
	t := p.targets[id]
	if t == nil {
		if len(p.targets) >= p.cfg.MaxUpstreams {
			return
		}
		t = &target{id: id, due: now, regs: []registration{r}}
		p.targets[id] = t
		p.enqueue(t)
		p.nudge()
		return
	}
	at := slices.IndexFunc(t.regs, func(o registration) bool { return o.owner == owner })
	if at < 0 {
		t.regs = append(t.regs, r)
	} else {
		t.regs[at] = r
	}
	// A new owner must not make the upstream be asked more often, or a storm
	// of reloads would be one of scrapes; only a shorter interval may.
	if next := now.Add(r.interval); t.queued && t.fails == 0 && next.Before(t.due) {
		t.due = next
		heap.Fix(&p.queues[t.class()], t.index)
		p.nudge()
	}
}

// Drop ends all that owner registered. Its fetches aren't called any more, and
// those in progress see their context end and are told to nobody.
func (p *Poller) Drop(owner any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.targets {
		p.remove(t, func(r registration) bool { return r.owner == owner })
	}
}

// expire ends registrations that weren't renewed.
func (p *Poller) expire(t *target, now time.Time) {
	p.remove(t, func(r registration) bool { return !r.until.IsZero() && !now.Before(r.until) })
}

func (p *Poller) remove(t *target, which func(registration) bool) {
	if s := t.current; s != nil && which(s.reg) {
		s.dropped = true
		s.cancel()
	}
	t.regs = slices.DeleteFunc(t.regs, which)
	if len(t.regs) > 0 {
		return
	}
	delete(p.targets, t.id)
	if t.queued {
		heap.Remove(&p.queues[t.class()], t.index)
	}
}

func (p *Poller) enqueue(t *target) { heap.Push(&p.queues[t.class()], t) }

// queue is a heap of the targets that wait, the next due first.
type queue []*target

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	t := x.(*target)
	t.index, t.queued = len(*q), true
	*q = append(*q, t)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	t.queued = false
	return t
}
