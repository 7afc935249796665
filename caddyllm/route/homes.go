package route

import "math"

// homes finds the upstreams that gateways agree on for a prompt without a word.
// What one upstream can carry has an owner, the first by rendezvous hashing: a
// session that another gateway has served before is likely there. A beginning
// that is too popular for one is left to some of them by the same hash, in the
// measure of the share of requests that carry it, and what is behind has its
// owner among those.
func (r *Router) homes(q *Request, o *outlook) {
	chain := q.sought()
	if len(chain) == 0 {
		return
	}
	all := float64(len(r.candidates))
	rest, begin, carried := r.popular.beginning(chain, all)
	if rest > 0 {
		o.popular = float64(rest) * o.block
		share := float64(carried) / float64(r.popular.size)
		// The key is where the most popular part of it ends: the prompts of a
		// tenant must not follow that which all tenants begin with.
		least := math.MaxUint64 * (1 - min(replication*share, 1))
		first := r.first(chain[begin], false)
		for i := range r.candidates {
			c := &r.candidates[i]
			c.shares = c.rank == sound && (i == first || float64(mix(chain[begin]^c.up.hash)) >= least)
		}
	}
	for i := range r.candidates {
		o.begun = o.begun || float64(r.candidates[i].blocks)*o.block > o.popular+o.block
	}
	owner := r.first(chain[rest], rest > 0)
	if owner < 0 {
		return
	}
	r.candidates[owner].owned = true
	if !o.begun {
		o.again = lookedFor * *r.peers.owned(o.popular, false) * max(o.prompt-o.block-o.popular, 0)
	}
}

// first is the sound candidate that is first by rendezvous hashing, of all or of
// those that share; -1 if there is none.
func (r *Router) first(key uint64, sharing bool) int {
	best, bestScore := -1, uint64(0)
	for i := range r.candidates {
		c := &r.candidates[i]
		if score := mix(key ^ c.up.hash); c.rank == sound && (c.shares || !sharing) && score >= bestScore {
			best, bestScore = i, score
		}
	}
	return best
}

// owned is what a prompt's owner is thought to hold of what is its own, as a part.
func (p *peers) owned(popular float64, begun bool) *float64 {
	switch {
	case begun:
		return &p.begun
	case popular > 0:
		return &p.ending
	}
	return &p.owning
}

// guessed is how much of a prompt a candidate holds, with what peers may have
// left there: so much is known.
func (r *Router) guessed(c *candidate, o *outlook, known float64) float64 {
	held := known
	if c.shares {
		held += r.peers.sharing * max(o.popular-held, 0)
	}
	if c.owned {
		held += *r.peers.owned(o.popular, o.begun) * max(o.prompt-o.block-max(held, o.popular), 0)
	}
	return held
}

// learnGuess takes in what an upstream held that peers would have chosen, in tokens
// as the prompt was estimated to have. The last block is computed anew anywhere.
func (p *peers) learnGuess(f *flight, cached, block float64) {
	learn := func(guess *float64, from, until float64) {
		if until > from {
			held := min(max(cached-from, 0)/(until-from), 1)
			*guess = max(*guess*guessMemory+held*(1-guessMemory), guessMin)
		}
	}
	if f.shares {
		learn(&p.sharing, f.matched, f.popular)
	}
	// Tokens of a part are estimates, and an owner that has lost what is popular of a
	// prompt has lost all of that, so that half of it tells.
	if !f.owned || cached < f.popular/2 {
		return
	}
	learn(p.owned(f.popular, f.begun), max(f.matched, f.popular), f.prompt-block)
}
