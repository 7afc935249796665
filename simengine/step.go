package simengine

import (
	"math"
	"slices"
	"time"
)

// Next tells when Step is due: when the step in progress ends, or when a
// request or a cancel waits to be seen. It is false if there is nothing to do
// until the next Submit.
func (e *Engine) Next() (at time.Duration, busy bool) {
	if e.busy {
		return e.end, true
	}
	// No step is in progress, so nothing waits, or the engine sleeps: schedule
	// always finds a request to run if there is one.
	at = math.MaxInt64
	if len(e.arriving) > 0 {
		at, busy = e.arriving[0].times.Queued, true
	}
	if len(e.leaving) > 0 {
		at, busy = min(at, e.leaving[0].leaveAt), true
	}
	if len(e.controls) > 0 {
		at, busy = min(at, e.controls[0].at), true
	}
	if !busy {
		return 0, false
	}
	return at, true
}

// Step ends the step in progress, if it is due, takes in what arrived up to
// now, and begins the next step at now. Before Next's time it does nothing. The
// outputs are those of the step that ended, in batch order, then aborts; the
// slice is valid until the next call.
func (e *Engine) Step(now time.Duration) []Output {
	e.outputs, e.kvEvents = e.outputs[:0], e.kvEvents[:0]
	if e.busy && now < e.end {
		return nil
	}
	e.settle(1)
	e.step(now, false)
	return e.outputs
}

// step is Step; when quiet it leaves out the outputs that Advance doesn't tell.
func (e *Engine) step(now time.Duration, quiet bool) {
	e.clock = max(e.clock, now)
	ended, seen := e.busy, now
	if ended {
		if e.cfg.AsyncScheduling {
			// The step to begin was composed when the one that ends began.
			seen = e.began
		}
		e.finish(now, seen, quiet)
		e.busy = false
		e.kvEvents, e.kvPending = e.kvPending, e.kvEvents
		if !e.cfg.AsyncScheduling {
			e.free()
			e.show()
		}
	}
	left := e.compose(now, seen)
	if left && !e.busy || ended && e.cfg.AsyncScheduling {
		e.show()
	}
}

// compose begins the next step at now with what was to be seen at seen, and if
// that is nothing, with what is to be seen now. It tells whether aborts were
// seen.
func (e *Engine) compose(now, seen time.Duration) (left bool) {
	for {
		left = e.leave(now, seen) || left
		left = e.control(seen) || left
		e.clear()
		e.arrive(seen)
		work, ok := e.schedule(seen)
		e.free()
		if ok {
			e.begin(now, work)
			return left
		}
		if seen == now {
			return left
		}
		seen = now
	}
}

// begin begins a step. What a step's end leaves of a nanosecond goes to the next
// one, if that follows at once.
func (e *Engine) begin(now time.Duration, work Work) {
	ticks := e.rates.step(&e.cfg.Cost, work)
	if now == e.end {
		ticks += e.frac
	}
	e.busy, e.work, e.began = true, work, now
	if e.done == 0 {
		e.began += e.cfg.Cost.FirstStep
	}
	e.end = e.began + time.Duration(ticks>>tickBits)
	e.frac = ticks & (1<<tickBits - 1)
}

// Stats returns what was true when the last step ended. A step without work,
// as after the cancel of all requests, counts as one.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Running, s.Waiting, s.Deferred = e.shown.running, e.shown.waiting, e.shown.deferred
	s.KVUsage = 1 - float64(e.shown.free)/float64(e.pool.Capacity())
	s.PrefixQueries, s.PrefixHits = e.shown.queries, e.shown.hits
	s.Preemptions, s.Aborted, s.Evictions = e.shown.preemptions, e.shown.aborted, e.shown.evictions
	return s
}

// shown is the part of Stats that changes after the end of a step too, as it was
// at the end.
type shown struct {
	running, waiting, deferred, free               int
	queries, hits, preemptions, aborted, evictions uint64
}

// show publishes the snapshot that ends a step.
func (e *Engine) show() {
	e.showAdapters()
	e.shown = shown{
		running: len(e.running), waiting: e.waiting.len(), deferred: e.deferred, free: e.pool.Free(),
		queries: e.stats.PrefixQueries, hits: e.stats.PrefixHits,
		preemptions: e.stats.Preemptions, aborted: e.stats.Aborted, evictions: e.pool.Evictions(),
	}
}

// arrive lets the scheduler see what came up to now.
func (e *Engine) arrive(now time.Duration) {
	n := 0
	for n < len(e.arriving) && e.arriving[n].times.Queued <= now {
		e.enqueue(e.arriving[n])
		n++
	}
	e.arriving = slices.Delete(e.arriving, 0, n)
}

func (e *Engine) enqueue(s *sequence) {
	if e.cfg.PriorityScheduling {
		e.blocked = false // there may be a new head
		e.waiting.insert(s, bySequence)
		return
	}
	e.waiting.pushBack(s)
}
