package scrape

import (
	"container/heap"
	"slices"
	"time"
)

// Job is an upstream to be scraped, and who wants to know.
type Job struct {
	// Owner is a pointer that tells jobs apart: one that sets a job of the
	// same key again changes what it asked for.
	Owner any
	// Key says what is asked for and how, address, scheme, paths and header:
	// jobs of one key share their scrapes, whatever their sinks.
	Key      string
	Sink     Sink
	Upstream string        // what Sink knows it by
	Interval time.Duration // 0 or less means 1s; below 50ms means 50ms
	// Expiry above 0 ends the job when it isn't set again for so long.
	Expiry time.Duration
	// Places are where the page may be, tried in this order until one has it;
	// then that one is asked first. At least one.
	Places []Fetch
}

// target is what jobs of one key ask for. It is in a queue unless a scrape of
// it is running.
type target struct {
	key     string
	jobs    []dated // oldest owner first; the last one's places are used
	due     time.Time
	fails   int // scrapes failed since the last good one
	place   int // that had the last good page
	current *attempt
	queued  bool
	index   int // in its queue

	told    string // the reason last told as a change
	changes int    // told since span began
	span    time.Time
}

type dated struct {
	Job
	until time.Time // zero: until dropped
}

func (t *target) class() int {
	if t.fails > 0 {
		return failing
	}
	return healthy
}

func (t *target) interval() time.Duration {
	shortest := t.jobs[0].Interval
	for _, j := range t.jobs[1:] {
		shortest = min(shortest, j.Interval)
	}
	return shortest
}

// listeners are the jobs' sinks, each once for each upstream.
func (t *target) listeners() []listener {
	var all []listener
	for _, j := range t.jobs {
		if l := (listener{j.Sink, j.Upstream}); !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	return all
}

// changed reports whether a scrape's outcome is news.
func (t *target) changed(now time.Time, reason string) bool {
	if reason == t.told {
		return false
	}
	if now.Sub(t.span) >= changesSpan {
		t.span, t.changes = now, 0
	}
	if t.changes == maxChanges {
		return false // it is told later, if it lasts
	}
	t.changes++
	t.told = reason
	return true
}

// Set has a job done from now on. The first scrape is due at once. A target of
// several jobs is scraped at the shortest of their intervals, at the places of
// the owner that came last.
func (p *Poller) Set(j Job) {
	if j.Interval <= 0 {
		j.Interval = defaultInterval
	}
	j.Interval = max(j.Interval, minInterval)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	d := dated{Job: j}
	if j.Expiry > 0 {
		d.until = now.Add(j.Expiry)
	}
	t := p.targets[j.Key]
	if t == nil {
		if len(p.targets) >= p.cfg.MaxUpstreams {
			return
		}
		t = &target{key: j.Key, due: now, jobs: []dated{d}}
		p.targets[j.Key] = t
		p.enqueue(t)
		p.nudge()
		return
	}
	at := slices.IndexFunc(t.jobs, func(o dated) bool { return o.Owner == j.Owner })
	if at < 0 {
		t.jobs = append(t.jobs, d)
	} else {
		t.jobs[at] = d
	}
	// A new owner must not make the upstream be asked more often, or a storm
	// of reloads would be one of scrapes; only a shorter interval may.
	if next := now.Add(j.Interval); t.queued && t.fails == 0 && next.Before(t.due) {
		t.due = next
		heap.Fix(&p.queues[t.class()], t.index)
		p.nudge()
	}
}

// Drop ends all jobs of owner. Its fetches aren't called any more, and those
// in progress see their context end and are told to nobody.
func (p *Poller) Drop(owner any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.targets {
		p.remove(t, func(d dated) bool { return d.Owner == owner })
	}
}

// expire ends jobs that weren't set again in time.
func (p *Poller) expire(t *target, now time.Time) {
	p.remove(t, func(d dated) bool { return !d.until.IsZero() && !now.Before(d.until) })
}

func (p *Poller) remove(t *target, which func(dated) bool) {
	for _, d := range t.jobs {
		if s := t.current; s != nil && s.job.Owner == d.Owner && which(d) {
			s.dropped = true
			s.cancel()
		}
	}
	t.jobs = slices.DeleteFunc(t.jobs, which)
	if len(t.jobs) > 0 {
		return
	}
	delete(p.targets, t.key)
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
