package simengine

import "fmt"

// invariants tells the first thing that doesn't fit together in the engine.
func (e *Engine) invariants() error {
	held := make([][]int32, 0, len(e.running))
	tokens := 0
	for _, s := range e.running {
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
	for _, s := range e.waiting.all() {
		if len(s.blocks) != 0 || s.computed != 0 || s.chunk != 0 || s.gone {
			return fmt.Errorf("request %d waits with %d blocks, %d computed", s.ID, len(s.blocks), s.computed)
		}
	}
	switch {
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
