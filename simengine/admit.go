package simengine

import "time"

// admit takes in waiting requests in order until one doesn't fit: those behind
// it wait, however small they are. Only who lacks an adapter's slot is passed
// over. It returns what is left of the budget.
func (e *Engine) admit(now time.Duration, budget int) int {
	e.occupySlots()
	for i := 0; budget > 0 && i < e.waiting.len() && len(e.running) < e.cfg.MaxNumSeqs && !e.blocked; {
		s := e.waiting.at(i)
		if !e.hasSlot(s) {
			e.deferIt(s, true)
			i++
			continue
		}
		if !e.enter(s, budget) {
			break
		}
		e.waiting.take(i)
		e.deferIt(s, false)
		e.occupySlot(s)
		e.running = append(e.running, s)
		e.admissions++
		s.entered = e.admissions
		budget -= s.chunk
		if !s.admitted {
			s.admitted = true
			s.times.Scheduled = now
			e.lookedUp(s)
		}
	}
	return budget
}

// lookedUp counts the first admission's hit. Those after a preemption find the
// request's own blocks and would flatter the cache.
func (e *Engine) lookedUp(s *sequence) {
	if e.cfg.DisablePrefixCaching || s.SkipPrefixCache {
		return
	}
	s.cached = s.computed
	e.stats.PrefixQueries += uint64(s.known)
	e.stats.PrefixHits += uint64(s.cached)
}

// enter gives s the blocks of its cached prefix and of its first chunk, if all
// that it knows would fit at once. Not the first chunk alone, unless so
// configured: prompts that come in piece by piece throw each other out half-way.
func (e *Engine) enter(s *sequence, budget int) bool {
	size := e.cfg.BlockSize
	// The last token is computed in any case, to have something to generate
	// from, and with it its whole block.
	most := s.full(s.known-1, size)
	if s.SkipPrefixCache {
		most = 0
	}
	head, tail := s.Blocks, []uint64(nil)
	if most <= len(head) {
		head = head[:most]
	} else {
		tail = s.OutputBlocks[:most-len(head)]
	}
	found, free := e.match(head, tail, s.blocks)
	hits := len(found)
	fits := s.known
	if e.cfg.AdmitByChunk {
		fits = min(s.known, hits*size+min(budget, e.chunkMax))
	}
	spare := 0
	if len(e.running) > 0 {
		spare = e.watermark
	}
	if blocksFor(fits, size)-hits+free+spare > e.pool.Free() {
		s.blocks = found[:0]
		if !e.cfg.AdmitByChunk { // then it depends on the budget too
			e.blocked, e.blockedOn = true, 0
			if hits < most {
				e.blockedOn = s.hash(hits)
			}
		}
		return false
	}
	e.pool.Hold(found)
	s.blocks = found
	s.registered = hits
	s.computed = hits * size
	s.chunk = min(s.known-s.computed, e.chunkMax, budget)
	return e.reserve(s, s.computed+s.chunk)
}

// match appends to found the blocks of the prefix that are in the cache, and
// returns how many of them are free.
func (e *Engine) match(head, tail []uint64, found []int32) (_ []int32, free int) {
	for {
		n := len(found)
		var more int
		if n < len(head) {
			found, more = e.pool.Match(head[n:], found)
		} else {
			found, more = e.pool.Match(tail[n-len(head):], found)
		}
		free += more
		switch {
		case len(found) > 0 && e.pool.IsTip(found[len(found)-1]):
			e.awaken(found[len(found)-1])
		case len(found) == n || len(found) == len(head)+len(tail) || len(found) != len(head):
			return found, free
		}
	}
}
