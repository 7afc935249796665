package simengine

import "time"

// turn ends the step in progress of a steady batch, at its time, and begins the
// next. Nobody leaves by his own will in it.
func (e *Engine) turn() {
	now := e.end
	t := &e.steady
	e.clock = max(e.clock, now)
	e.done++
	t.context += t.decoding
	before, generated := e.prompts(), t.decoding
	if e.done == t.next || t.prefilling > 0 {
		generated = e.sweep(now)
	}
	e.counted(1, generated, e.prompts().less(before))
	e.ended = now
	seen := now
	if e.cfg.AsyncScheduling {
		seen = e.began // as in step
	} else {
		e.show()
	}
	e.arrive(seen)
	if work, ok := e.carryOn(seen); ok {
		e.free()
		e.begin(now, work)
	} else {
		e.settle(0)
		e.busy = false
		e.compose(now, seen)
		e.foldAll()
	}
	if e.cfg.AsyncScheduling {
		e.show()
	}
}

// sweep gives tokens to those of a steady batch that end or come out of their
// prefill, and returns how many tokens all got.
func (e *Engine) sweep(now time.Duration) (generated int) {
	t := &e.steady
	generated = t.decoding
	next, kept := forever, 0
	for i, end := range t.ends {
		switch {
		case end == e.done:
			e.last(e.running[i], now)
			continue
		case end == notYet:
			s := e.running[i]
			if !s.compute() {
				break
			}
			s.gain()
			generated++
			t.prefilling--
			if e.emit(s, now, true) {
				e.part(s)
				continue
			}
			end = e.fold(s)
			next = min(next, end)
		default:
			next = min(next, end)
		}
		if kept != i || end != t.ends[i] {
			e.running[kept], t.ends[kept] = e.running[i], end
		}
		kept++
	}
	clear(e.running[kept:])
	e.running, t.ends = e.running[:kept], t.ends[:kept]
	t.next = next
	return generated
}

// last gives a folded sequence its last token and lets it go.
func (e *Engine) last(s *sequence, now time.Duration) {
	previous := s.last
	if e.done-s.since > 1 {
		previous = e.ended
	}
	e.unfold(s)
	s.last = previous
	e.emit(s, now, true)
	e.part(s)
}

// carryOn composes the next step of a steady batch. It changes nothing and
// returns false if there is none or somebody would have to go short.
func (e *Engine) carryOn(now time.Duration) (Work, bool) {
	t := &e.steady
	if t.prefilling > 0 && e.cfg.LongPrefillTokens > 0 {
		return Work{}, false
	}
	budget := e.cfg.MaxNumBatchedTokens - t.decoding
	begins, fills := t.ring(e.done+1), t.ring(e.done+2)
	need := begins.count()
	if t.prefilling > 0 {
		rest := budget
		for i, s := range e.running {
			if t.ends[i] == notYet {
				s.chunk = min(s.known-s.computed, rest)
				rest -= s.chunk
				need += max(0, blocksFor(s.computed+s.chunk, e.cfg.BlockSize)-len(s.blocks))
			}
		}
	}
	if budget < 0 || need > e.pool.Free() {
		e.takeBack()
		return Work{}, false
	}
	e.takeBlocks(begins)
	e.makeKnown(fills)
	w := Work{DecodeSeqs: t.decoding, ContextTokens: t.context}
	if t.prefilling > 0 {
		for i, s := range e.running {
			if t.ends[i] == notYet {
				e.reserve(s, s.computed+s.chunk)
				budget -= s.chunk
			}
		}
	}
	if e.waiting.len() > 0 {
		e.limitChunks()
		old := len(e.running)
		e.admit(now, budget)
		for range e.running[old:] {
			t.ends = append(t.ends, notYet)
			t.prefilling++
		}
	}
	if t.prefilling > 0 {
		for i, s := range e.running {
			if t.ends[i] == notYet {
				w.add(s)
			}
		}
	}
	return w, len(e.running) > 0
}

// takeBack takes back the chunks that carryOn has given.
func (e *Engine) takeBack() {
	for i, s := range e.running {
		if e.steady.ends[i] == notYet {
			s.chunk = 0
		}
	}
}

// takeBlocks gives a block to each in the ring.
func (e *Engine) takeBlocks(r *ring) {
	e.pool.Lend(r.lazy)
	for s := r.first; s != nil; s = s.behind {
		s.blocks, _ = e.pool.Take(1, s.blocks)
	}
}

// makeKnown registers the block that each in the ring fills.
func (e *Engine) makeKnown(r *ring) {
	if e.steady.hashing == 0 {
		return
	}
	for s := r.first; s != nil; s = s.behind {
		// A sequence has computed all but one of the tokens of the block.
		if s.hashing && s.registered < len(s.blocks) && s.registered < len(s.Blocks)+len(s.OutputBlocks) {
			e.register(s)
		}
	}
}
