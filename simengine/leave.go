package simengine

import (
	"slices"
	"time"
)

// finish ends the step in progress at now: what was to be computed is, who has
// no token left to compute gets the next one, and who has its last leaves. A
// request whose cancel was seen gets none: its reader is gone. Blocks of those
// that leave are held until free. When quiet only first and last tokens are told.
func (e *Engine) finish(now, seen time.Duration, quiet bool) {
	before, generated := e.prompts(), 0
	kept := e.running[:0]
	for _, s := range e.running {
		if !s.compute() || s.cancelled(seen) {
			kept = append(kept, s)
			continue
		}
		s.gain()
		generated++
		if e.emit(s, now, quiet) {
			e.part(s)
		} else {
			kept = append(kept, s)
		}
	}
	clear(e.running[len(kept):])
	e.running = kept
	e.counted(1, generated, e.prompts().less(before))
	e.done++
	e.ended = now
}

// emit tells of the token that s got at now, if it isn't one in the middle and
// those are not told, and returns whether it was the last.
func (e *Engine) emit(s *sequence, now time.Duration, quiet bool) (last bool) {
	first := s.generated == 1
	last = s.generated >= s.limit
	if first {
		s.times.First = now
		e.stats.PromptTokens += uint64(s.PromptTokens)
		e.stats.PromptTokensCached += uint64(s.cached)
	}
	if quiet && !first && !last {
		s.last = now
		return false
	}
	o := s.output(now)
	s.last = now
	if last {
		o.Finished, o.Reason = true, s.Finish
		e.count(s.Finish)
	}
	e.outputs = append(e.outputs, o)
	return last
}

// prompts are tokens of prompts whose first token has appeared.
type prompts struct{ all, cached uint64 }

func (e *Engine) prompts() prompts { return prompts{e.stats.PromptTokens, e.stats.PromptTokensCached} }

func (p prompts) less(q prompts) prompts { return prompts{p.all - q.all, p.cached - q.cached} }

// counted counts steps that ended with the same number of tokens.
func (e *Engine) counted(steps, generated int, p prompts) {
	e.stats.Steps += uint64(steps)
	e.stats.GenerationTokens += uint64(steps) * uint64(generated)
	e.stats.IterationTokens.observe(int(p.all)+generated, steps)
	e.stats.IterationComputed.observe(int(p.all-p.cached)+generated, steps)
}

// part drops a request that finished; its blocks are held until free.
func (e *Engine) part(s *sequence) {
	if !e.cfg.AsyncScheduling { // then that is at once
		e.drop(s)
		return
	}
	e.held = append(e.held, s.blocks...)
	e.heldEnds = append(e.heldEnds, len(e.held))
	s.blocks = s.blocks[:0]
	e.drop(s)
}

// free gives back the blocks of those that finished.
func (e *Engine) free() {
	from := 0
	for _, to := range e.heldEnds {
		e.blocked = false
		e.pool.Release(e.held[from:to])
		from = to
	}
	e.held, e.heldEnds = e.held[:0], e.heldEnds[:0]
}

func (e *Engine) count(reason string) {
	if reason == ReasonLength {
		e.stats.FinishedLength++
		return
	}
	e.stats.FinishedStop++
}

// drop forgets a request that no list but leaving will know any more.
func (e *Engine) drop(s *sequence) {
	delete(e.byID, s.ID)
	if s.Adapter != "" {
		e.adapted--
	}
	e.deferIt(s, false)
	e.pool.Release(s.blocks)
	s.blocks = s.blocks[:0]
	s.gone = true
	e.blocked = false
	if s.leaveAt == never {
		e.recycle(s)
	}
}

func (e *Engine) recycle(s *sequence) {
	if len(e.spare) < spareMax {
		*s = sequence{blocks: s.blocks[:0]}
		e.spare = append(e.spare, s)
	}
}

// leave lets go of those cancelled up to seen, in the order of their cancels,
// and tells whether there were any.
func (e *Engine) leave(now, seen time.Duration) bool {
	n := 0
	for n < len(e.leaving) && e.leaving[n].leaveAt <= seen {
		n++
	}
	if n == 0 {
		return false
	}
	for _, s := range e.leaving[:n] {
		if s.gone {
			continue // its last token came first
		}
		o := s.output(now)
		o.Finished, o.Reason = true, ReasonAbort
		e.outputs = append(e.outputs, o)
		e.stats.Aborted++
		e.drop(s)
	}
	gone := func(s *sequence) bool { return s.gone }
	e.running = slices.DeleteFunc(e.running, gone)
	e.arriving = slices.DeleteFunc(e.arriving, gone)
	e.waiting.drop(gone)
	for _, s := range e.leaving[:n] {
		e.recycle(s)
	}
	e.leaving = slices.Delete(e.leaving, 0, n)
	return true
}
