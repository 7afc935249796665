package simengine

import "fmt"

// invariants tells the first thing that doesn't fit together in the engine.
func (e *Engine) invariants() error {
	held := make([][]int32, 0, len(e.running))
	tokens := 0
	adapters := make(map[string]bool)
	for _, s := range e.running {
		if s.Adapter != "" && s.chunk > 0 {
			adapters[s.Adapter] = true
		}
		held = append(held, s.blocks)
		tokens += s.chunk
		switch {
		case s.gone || e.byID[s.ID] != s:
			return fmt.Errorf("request %d runs but is gone", s.ID)
		case s.known != s.PromptTokens+s.generated:
			return fmt.Errorf("request %d knows %d tokens of %d+%d", s.ID, s.known, s.PromptTokens, s.generated)
		case s.computed >= s.known || s.computed+s.chunk > s.known:
			return fmt.Errorf("request %d computed %d and computes %d of %d tokens", s.ID, s.computed, s.chunk, s.known)
		case len(s.blocks) < blocksFor(s.computed+s.chunk, e.cfg.BlockSize):
			return fmt.Errorf("request %d holds %d blocks for %d tokens", s.ID, len(s.blocks), s.computed+s.chunk)
		case s.generated >= s.limit:
			return fmt.Errorf("request %d generated %d of %d tokens and runs", s.ID, s.generated, s.limit)
		}
	}
	deferred := 0
	for _, s := range e.waiting.all() {
		if s.deferred {
			deferred++
		}
		if len(s.blocks) != 0 || s.computed != 0 || s.chunk != 0 || s.gone {
			return fmt.Errorf("request %d waits with %d blocks, %d computed", s.ID, len(s.blocks), s.computed)
		}
	}
	switch {
	case e.deferred != deferred:
		return fmt.Errorf("%d requests deferred, %d counted", deferred, e.deferred)
	case e.cfg.MaxLoRAs > 0 && len(adapters) > e.cfg.MaxLoRAs:
		return fmt.Errorf("a step of %d adapters, at most %d may be", len(adapters), e.cfg.MaxLoRAs)
	case len(e.running) > e.cfg.MaxNumSeqs:
		return fmt.Errorf("%d requests run, at most %d may", len(e.running), e.cfg.MaxNumSeqs)
	case tokens > e.cfg.MaxNumBatchedTokens:
		return fmt.Errorf("a step of %d tokens, at most %d may be", tokens, e.cfg.MaxNumBatchedTokens)
	case e.busy != (tokens > 0):
		return fmt.Errorf("step in progress: %v, with %d tokens", e.busy, tokens)
	case !e.busy && !e.asleep && len(e.running)+e.waiting.len() > 0:
		return fmt.Errorf("idle with %d running and %d waiting", len(e.running), e.waiting.len())
	case len(e.byID) != len(e.running)+e.waiting.len()+len(e.arriving):
		return fmt.Errorf("%d requests known, %d+%d+%d there", len(e.byID), len(e.running), e.waiting.len(), len(e.arriving))
	}
	return e.pool.Check(held)
}

// steadyInvariants is invariants of an engine between two calls of Advance.
func (e *Engine) steadyInvariants() error {
	t := &e.steady
	if !t.on {
		return e.invariants()
	}
	var sum steady
	var held [][]int32
	next := forever
	counts := make([]int, len(t.rings))
	unfinished, lent := false, 0
	for i, s := range e.running {
		held = append(held, s.blocks)
		if !s.folded {
			sum.prefilling++
			unfinished = unfinished || s.computed+s.chunk < s.known
			if t.ends[i] != notYet {
				return fmt.Errorf("request %d is in prefill and ends with step %d", s.ID, t.ends[i])
			}
			continue
		}
		if unfinished {
			return fmt.Errorf("request %d decodes behind one in prefill", s.ID)
		}
		steps := int(e.done - s.since)
		sum.decoding++
		sum.context += s.known + steps
		if s.hashing && !s.lazy {
			sum.hashing++
		}
		if s.lazy {
			lent += blocksFor(s.computed+steps+1, e.cfg.BlockSize) - len(s.blocks)
		}
		counts[s.begins]++
		next = min(next, t.ends[i])
		switch {
		case t.ends[i] != e.done+int64(s.limit-s.generated-steps):
			return fmt.Errorf("request %d ends with step %d", s.ID, t.ends[i])
		case !s.lazy && len(s.blocks) < blocksFor(s.computed+steps+1, e.cfg.BlockSize):
			return fmt.Errorf("request %d holds %d blocks for %d tokens", s.ID, len(s.blocks), s.computed+steps+1)
		case e.pool.Caching() && !s.lazy && s.registered != s.full(s.computed+steps+1, e.cfg.BlockSize):
			return fmt.Errorf("request %d made %d blocks known with %d tokens", s.ID, s.registered, s.computed+steps+1)
		}
	}
	if sum.decoding != t.decoding || sum.context != t.context || sum.hashing != t.hashing || sum.prefilling != t.prefilling || next != t.next && t.decoding > 0 {
		return fmt.Errorf("a batch of %+v, next end %d, kept as %+v", sum, next, *t)
	}
	for i, r := range t.rings {
		n := 0
		for s := r.first; s != nil; s = s.behind {
			if n++; s.behind == nil && s != r.last {
				return fmt.Errorf("ring %d has a wrong end", i)
			}
		}
		if n != r.eager || r.count() != counts[i] {
			return fmt.Errorf("ring %d has %d eager sequences, counted as %d, and %d lazy ones, want %d", i, n, r.eager, r.lazy, counts[i])
		}
	}
	if lent != e.pool.Lent() {
		return fmt.Errorf("%d blocks are lent, %d owed", e.pool.Lent(), lent)
	}
	return e.pool.Check(held)
}
