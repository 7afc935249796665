package route

import (
	"sync/atomic"
	"time"
)

// Pulse hears the steps of an upstream's engine. An engine works in steps, and
// each gives every request that decodes one token: each chunk of a stream marks
// the end of a step and the beginning of the next, which a request sent now has
// to wait for. All methods are safe for concurrent use, also on a nil Pulse,
// and take no lock: a chunk costs two stores.
type Pulse struct {
	epoch time.Time
	last  atomic.Int64 // the last step's end, nanoseconds since epoch
	step  atomic.Int64 // a usual step's length, nanoseconds; 0 if none was heard
}

const (
	// stepMax bounds a gap that is taken for a step.
	stepMax = 2 * time.Second
	// stepMemory is the number of gaps over which their mean is taken. One that
	// is longer than stepOutlier means, by a prefill in the step or a stall on
	// the way, counts as that long: what is asked for is the usual step.
	stepMemory  = 16
	stepOutlier = 2
)

// Beat tells that a chunk of a stream came, and how long after the one before
// it; 0 if it is the stream's first.
func (p *Pulse) Beat(at time.Time, gap time.Duration) {
	if p == nil {
		return
	}
	p.last.Store(int64(at.Sub(p.epoch)))
	if gap <= 0 || gap > stepMax {
		return
	}
	step := p.step.Load()
	if step == 0 {
		p.step.Store(int64(gap))
		return
	}
	// Two streams that store at once lose one sample of many.
	p.step.Store(max(step+(min(int64(gap), stepOutlier*step)-step)/stepMemory, 1))
}

// rest is what is left of the step in progress, seconds; 0 where none was heard
// to begin lately.
func (p *Pulse) rest(now time.Duration) float64 {
	step := time.Duration(p.step.Load())
	since := now - time.Duration(p.last.Load())
	if since < 0 || since > step {
		return 0
	}
	return (step - since).Seconds()
}
