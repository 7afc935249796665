package route

import (
	"sync/atomic"
	"time"
)

// Pulse hears the steps of an upstream's engine. An engine works in steps, and
// each gives every request that decodes one token: each chunk of a stream marks
// the end of a step and the beginning of the next, which a request sent now has
// to wait for. All methods are safe for concurrent use, also on a nil Pulse,
// and take no lock: a chunk costs two stores, and the first of a step two more.
type Pulse struct {
	epoch time.Time
	last  atomic.Int64 // the last step's end, nanoseconds since epoch
	step  atomic.Int64 // length of a step without a prefill, nanoseconds; 0 if none was heard

	// When the step in progress began, nanoseconds since epoch, and how many have
	// begun. A step's chunks come one after the other, so the first tells.
	begun, count atomic.Int64

	// The last run of steps with a prefill, one after the other: when it began
	// and ended, nanoseconds since epoch, and the length of its last step. All
	// are 0 if there was none.
	runFrom, runUntil, runStep atomic.Int64
}

const (
	// stepMin and stepMax bound a gap that is taken for a step. Chunks closer to
	// each other are of one, as those that end a stream, or were read together.
	stepMin = time.Millisecond
	stepMax = 2 * time.Second
	// A step without a prefill is as long as the shortest that are heard, as at
	// high load all others have one in them. So step is what stepShorter of
	// stepOf gaps are shorter than: an eighth. It moves by 1/stepGrain up, and so
	// much more down.
	stepShorter = 1
	stepOf      = 8
	stepGrain   = 256
	// A step longShare times as long as one without a prefill has one.
	longShare = 2
)

// Beat tells that a chunk of a stream came, and how long after the one before
// it; 0 if it is the stream's first.
func (p *Pulse) Beat(at time.Time, gap time.Duration) {
	if p == nil {
		return
	}
	now := int64(at.Sub(p.epoch))
	p.last.Store(now)
	p.mark(now)
	if gap < stepMin || gap > stepMax {
		return
	}
	step := p.step.Load()
	if step == 0 {
		p.step.Store(int64(gap))
		return
	}
	// Two streams that store at once lose one sample of many.
	if int64(gap) < step {
		step -= step / stepGrain * (stepOf - stepShorter) / stepShorter
	} else {
		step += step / stepGrain
	}
	step = max(step, stepGrain)
	p.step.Store(step)
	if int64(gap) > longShare*step {
		p.long(now, int64(gap), step)
	}
}

// mark notes that a step has ended, and the next begun, if it wasn't noted yet.
func (p *Pulse) mark(now int64) {
	begun := p.begun.Load()
	if now-begun >= max(int64(stepMin), p.step.Load()/2) && p.begun.CompareAndSwap(begun, now) {
		p.count.Add(1)
	}
}

// began is when the step in progress began, and how many have begun.
func (p *Pulse) began() (at time.Duration, count int64) {
	// A step that is marked meanwhile is counted by who looks next.
	count = p.count.Load()
	return time.Duration(p.begun.Load()), count
}

// long notes a step with a prefill.
func (p *Pulse) long(end, gap, step int64) {
	if end-gap > p.runUntil.Load()+step {
		p.runFrom.Store(end - gap)
	}
	p.runUntil.Store(end)
	p.runStep.Store(gap)
}

// heard is when the last step ended, and how long one without a prefill is.
func (p *Pulse) heard() (last, step time.Duration) {
	return time.Duration(p.last.Load()), time.Duration(p.step.Load())
}

// rest is what is left of the step in progress, seconds; 0 where none was heard
// to begin lately.
func (p *Pulse) rest(now time.Duration) float64 {
	last, step := p.heard()
	since := now - last
	if since < 0 || since > step {
		return 0
	}
	return (step - since).Seconds()
}

// run is the last run of steps with a prefill, and the length of its last step.
func (p *Pulse) run() (from, until, step time.Duration) {
	return time.Duration(p.runFrom.Load()), time.Duration(p.runUntil.Load()), time.Duration(p.runStep.Load())
}
