package simengine

import (
	"slices"
	"time"
)

// schedule composes the next step: it gives each sequence its chunk. It returns
// what the step works on, and false if there is nothing to do.
func (e *Engine) schedule(now time.Duration) (Work, bool) {
	if e.asleep && e.paused.mode == PauseKeep {
		return Work{}, false
	}
	e.limitChunks()
	for {
		budget, preempted := e.advance(e.cfg.MaxNumBatchedTokens)
		// Whoever would come in now would take the memory that was just won by
		// throwing someone out.
		if !preempted && !e.asleep {
			budget = e.admit(now, budget)
		}
		if budget < e.cfg.MaxNumBatchedTokens {
			return e.load(), true
		}
		// By priority the first in the batch may throw itself out and leave the
		// step empty; the batch is then smaller by one, so this ends.
		if !preempted {
			return Work{}, false
		}
	}
}

// advance gives those that run their chunks, in order, and preempts where memory
// runs out. It returns what is left of the budget.
func (e *Engine) advance(budget int) (left int, preempted bool) {
	for i := 0; i < len(e.running) && budget > 0; i++ {
		s := e.running[i]
		chunk := min(s.known-s.computed, e.chunkMax, budget)
		for !e.reserve(s, s.computed+chunk) {
			preempted = true
			j := e.victim()
			budget += e.running[j].chunk
			self := e.running[j] == s
			e.preempt(j)
			if self {
				return budget, true
			}
			if j < i {
				i--
			}
		}
		s.chunk = chunk
		budget -= chunk
	}
	return budget, preempted
}

// limitChunks sets chunkMax for the step to compose.
func (e *Engine) limitChunks() {
	e.chunkMax = MaxTokens
	all := len(e.running) + e.waiting.len()
	if e.cfg.LongPrefillTokens == 0 || all == 1 && !e.cfg.LongPrefillAlone {
		return
	}
	e.chunkMax = e.cfg.LongPrefillTokens
	if e.cfg.LongPrefillAdaptive && all > 0 {
		e.chunkMax = max(e.chunkMax, e.cfg.MaxNumBatchedTokens/all)
	}
}

// reserve gives s the blocks for its first n tokens, and makes those that will
// be full known to the cache at once: who is scheduled after s shares them in
// the same step.
func (e *Engine) reserve(s *sequence, n int) bool {
	if need := blocksFor(n, e.cfg.BlockSize) - len(s.blocks); need > 0 {
		var ok bool
		if s.blocks, ok = e.pool.Take(need, s.blocks); !ok {
			return false
		}
	}
	e.makeFull(s, n)
	return true
}

// makeFull makes the blocks that the first n tokens of s fill known to the cache.
func (e *Engine) makeFull(s *sequence, n int) {
	for full := s.full(n, e.cfg.BlockSize); s.registered < full; {
		e.register(s)
	}
}

// register makes the next block of s known to the cache.
func (e *Engine) register(s *sequence) {
	i := s.registered
	s.registered++
	hash := s.hash(i)
	before := int32(0)
	if i > 0 {
		before = s.blocks[i-1]
	}
	if !e.pool.Register(before, s.blocks[i], hash) {
		return
	}
	if tip := e.pool.Disturbed(); tip != 0 {
		e.awaken(tip)
	}
	if hash == e.blockedOn {
		e.blocked = false
	}
	if e.cfg.KVEvents {
		e.stored(s, i)
	}
}

func blocksFor(tokens, size int) int { return (tokens + size - 1) / size }

// victim picks the running request to preempt: the last admitted, or the least
// urgent.
func (e *Engine) victim() int {
	last := len(e.running) - 1
	if !e.cfg.PriorityScheduling {
		return last
	}
	for i, s := range e.running {
		if bySequence(s, e.running[last]) > 0 {
			last = i
		}
	}
	return last
}

// preempt sends a running request back to the head of the queue. It keeps its
// tokens and loses its blocks; with luck some of them still remember it when it
// comes back.
func (e *Engine) preempt(i int) {
	s := e.running[i]
	e.running = slices.Delete(e.running, i, i+1)
	e.pool.Release(s.blocks)
	s.blocks = s.blocks[:0]
	s.registered, s.computed, s.chunk = 0, 0, 0
	s.preemptions++

	e.blocked = false
	e.stats.Preemptions++
	if e.cfg.PriorityScheduling {
		e.waiting.insert(s, bySequence)
		return
	}
	e.waiting.pushFront(s)
}

// load sums up the chunks of the batch.
func (e *Engine) load() Work {
	var w Work
	for _, s := range e.running {
		w.add(s)
	}
	return w
}

// add adds the chunk of s.
func (w *Work) add(s *sequence) {
	switch {
	case s.chunk == 0:
	case s.decodes():
		w.DecodeSeqs++
		w.ContextTokens += s.known
	default:
		w.PrefillTokens += s.chunk
		w.Attention += float64(s.chunk) * (float64(s.computed) + float64(s.chunk)/2)
	}
}
