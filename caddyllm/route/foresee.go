package route

import "time"

// Foresight is the choice that Pick would make, and what it would be made of.
type Foresight struct {
	Choice         // its Ticket names no reservation
	Terms  []Terms // in the targets' order
	Tie    bool    // others cost the same within the noise of the estimate: the first token's time and hashing chose
	Homing bool    // the session's upstream was kept, though another costs less
}

// Foresee returns the choice that Pick would make now among the targets. It
// reserves nothing and teaches nothing. It reports false only if there are no
// targets.
func (r *Router) Foresee(at time.Time, q *Request, targets []Target) (Foresight, bool) {
	if len(targets) == 0 {
		return Foresight{}, false
	}
	terms, o := r.explain(r.clock.at(at), q, targets)
	f := Foresight{Terms: terms}
	before := r.rng
	best := r.choose(q, &o)
	r.rng = before
	c, t := &r.candidates[best], &f.Terms[best]
	f.Choice = Choice{
		Index:         best,
		Reason:        o.reason(c),
		PromptTokens:  t.PromptTokens,
		MatchedTokens: t.MatchedTokens,
		MatchedBlocks: t.MatchedBlocks,
		FirstToken:    seconds(t.First),
	}
	lead := r.candidates[o.best].cost * (1 + tieBand)
	f.Homing = c.home && c.cost > lead
	if !f.Homing {
		for i := range r.candidates {
			other := &r.candidates[i]
			f.Tie = f.Tie || i != best && other.rank == c.rank && other.cost <= lead
		}
	}
	return f, true
}

// Forget drops all that is believed to be in an upstream's prefix cache, as
// after a reset that its metrics don't show. It returns the number of blocks,
// and false if the upstream isn't known.
func (r *Router) Forget(id string) (blocks int, ok bool) {
	slot, ok := r.slots[id]
	if !ok {
		return 0, false
	}
	blocks = r.index.Held(slot)
	r.empty(r.upstreams[slot])
	return blocks, true
}
