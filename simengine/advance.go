package simengine

import (
	"math"
	"time"
)

// Advance does what Step at each of Next's times up to until would do, and stops
// early when a step ends in which a request got its first token or ended. It
// returns these outputs alone, with all tokens since the request's previous
// Output in Tokens, and nil once until is reached. Times, Stats and what happens
// later are as if stepped, to the nanosecond; the tokens in between are not
// told. Step and Advance may be mixed. The slice is valid until the next call.
//
// A step that decodes and no more costs nothing by itself: a run of such steps
// is summed up until a request arrives, leaves or ends, or a block is short.
func (e *Engine) Advance(until time.Duration) []Output {
	e.outputs, e.kvEvents = e.outputs[:0], e.kvEvents[:0]
	for len(e.outputs) == 0 && len(e.kvEvents) == 0 {
		if !e.steady.on {
			at, busy := e.Next()
			if !busy || at > until {
				return nil
			}
			e.step(at, true)
			e.foldAll()
			continue
		}
		if e.end > until {
			return nil
		}
		if n := e.uneventful(); n > 0 {
			e.run(e.endedBy(until, n))
			continue
		}
		if e.called() <= e.end {
			e.settle(1)
			continue
		}
		e.turn()
	}
	return e.outputs
}

// Due tells when Advance will next have something to decide: a time before which
// it returns nil. A Submit, Cancel, Sleep or Wake may make it sooner. It is false
// if there is nothing to do until then.
func (e *Engine) Due() (at time.Duration, busy bool) {
	if !e.steady.on {
		return e.Next()
	}
	return e.endOf(e.uneventful()), true
}

// called is the time of the first Cancel, Sleep or Wake that was not seen yet.
func (e *Engine) called() time.Duration {
	at := time.Duration(math.MaxInt64)
	if len(e.leaving) > 0 {
		at = e.leaving[0].leaveAt
	}
	if len(e.controls) > 0 {
		at = min(at, e.controls[0].at)
	}
	return at
}

// uneventful is how many steps of a steady batch, beginning with the one in
// progress, end with a token for each and nothing else: none ends, comes, leaves
// or goes short of a block.
func (e *Engine) uneventful() int {
	t := &e.steady
	if t.prefilling > 0 || e.admits() {
		return 0
	}
	n := int(min(t.next-e.done-1, int64(e.longest())))
	at := e.called()
	if len(e.arriving) > 0 {
		at = min(at, e.arriving[0].times.Queued)
	}
	if at != math.MaxInt64 {
		n = e.endedBy(at-1, n)
	}
	return e.affordable(n)
}

// admits tells whether the next step may let a waiting request in.
func (e *Engine) admits() bool {
	t := &e.steady
	return e.waiting.len() > 0 && len(e.running) < e.cfg.MaxNumSeqs && t.decoding < e.cfg.MaxNumBatchedTokens &&
		(!e.blocked || t.hashing > 0)
}

// affordable is how many of the next n steps of a run can be followed by one
// that has its blocks.
func (e *Engine) affordable(n int) int {
	t := &e.steady
	free := e.pool.Free()
	if t.decoding*(n/len(t.rings)+1) <= free {
		return n
	}
	for i := range n {
		if free -= t.ring(e.done + int64(i) + 2).count(); free < 0 {
			return i
		}
	}
	return n
}

// grows is by how many ticks each step of a run is longer than the one before.
func (e *Engine) grows() int64 { return e.rates.context * int64(e.steady.decoding) }

// A run has at most runMax steps, and its ticks fit an int64 with room to spare.
const (
	runMax   = 1 << 16
	runTicks = 1 << 61
)

// longest is how many steps a run may have beyond the one in progress.
func (e *Engine) longest() int {
	t := &e.steady
	seconds := e.cfg.Cost.seconds(Work{DecodeSeqs: t.decoding, ContextTokens: t.context + t.decoding*runMax})
	if seconds >= stepMax.Seconds() {
		return 0
	}
	return int(min(runMax, runTicks/((seconds+e.cfg.Cost.Base.Seconds())*1e9*(1<<tickBits))))
}

// ticksTo is the time from e.end to the end of the n-th step after the one in
// progress, with the fraction of a nanosecond that e.end leaves out.
func (e *Engine) ticksTo(n int64) int64 {
	first := e.rates.decodes(e.steady.decoding, e.steady.context) // of the one in progress
	return e.frac + n*first + e.grows()*(n*(n+1)/2)
}

// endOf is the end of the n-th step after the one in progress.
func (e *Engine) endOf(n int) time.Duration {
	return e.end + time.Duration(e.ticksTo(int64(n))>>tickBits)
}

// endedBy is how many steps of a run, the one in progress included, end by at,
// at most most.
func (e *Engine) endedBy(at time.Duration, most int) int {
	if at < e.end || most == 0 {
		return 0
	}
	// n more steps take n·first + grows·n(n+1)/2, which is to be left at most.
	left := float64(at-e.end) * (1 << tickBits)
	a := float64(e.grows()) / 2
	b := float64(e.rates.decodes(e.steady.decoding, e.steady.context)) + a
	n := int(min(2*left/(b+math.Sqrt(b*b+4*a*left)), float64(most-1)))
	// The estimate may be off by rounding.
	for n > 0 && e.endOf(n) > at {
		n--
	}
	for n < most-1 && e.endOf(n+1) <= at {
		n++
	}
	return n + 1
}

// run ends n uneventful steps.
func (e *Engine) run(n int) {
	t := &e.steady
	ticks := e.ticksTo(int64(n))
	e.ended = e.endOf(n - 1)
	e.clock = max(e.clock, e.ended)
	for i := range n {
		e.done++
		if i == n-1 && !e.cfg.AsyncScheduling {
			e.show()
		}
		// As in carryOn, for a batch that is only that.
		if begins := t.ring(e.done + 1); begins.count() > 0 {
			e.takeBlocks(begins)
		}
		if fills := t.ring(e.done + 2); fills.first != nil {
			e.makeKnown(fills)
		}
	}
	if e.cfg.AsyncScheduling {
		e.show()
	}
	e.counted(n, t.decoding, prompts{})
	t.context += n * t.decoding
	e.began, e.work = e.ended, Work{DecodeSeqs: t.decoding, ContextTokens: t.context}
	e.end += time.Duration(ticks >> tickBits)
	e.frac = ticks & (1<<tickBits - 1)
}
