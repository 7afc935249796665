package route

// tieBand is how far two costs may be apart, relative to the lesser, to be
// equal within the noise of the estimate.
const tieBand = 0.03

// choose returns the best candidate's place. Suspended upstreams, and those
// that this request was sent to before, come last.
func (r *Router) choose(q *Request) int {
	rank := func(c *candidate) int {
		switch {
		case c.tried:
			return 2
		case c.last:
			return 1
		}
		return 0
	}
	best := 0
	for i := 1; i < len(r.candidates); i++ {
		a, b := &r.candidates[i], &r.candidates[best]
		if ra, rb := rank(a), rank(b); ra < rb || ra == rb && a.cost < b.cost {
			best = i
		}
	}
	first := &r.candidates[best]
	limit, wanted := first.cost*(1+tieBand), rank(first)
	var bestScore uint64
	var bestBlocks int32
	for i := range r.candidates {
		if c := &r.candidates[i]; rank(c) == wanted && c.cost <= limit {
			bestBlocks = max(bestBlocks, c.blocks)
		}
	}
	for i := range r.candidates {
		c := &r.candidates[i]
		// Among equals, what is held counts: it saves the engine work that
		// the next request would wait for.
		if rank(c) != wanted || c.cost > limit || c.blocks < bestBlocks {
			continue
		}
		if score := r.score(q, c); score >= bestScore {
			best, bestScore = i, score
		}
	}
	return best
}

// score ranks an upstream among equals, by rendezvous hashing of the first
// block that it doesn't hold: each prompt has its own order of upstreams, the
// same in every gateway, which hardly changes when upstreams come or go. The
// blocks before are held by all that tie, and may be a system prompt, whose
// users must not all follow one order. A prompt of less than a block goes
// anywhere.
func (r *Router) score(q *Request, c *candidate) uint64 {
	if len(q.Chain) == 0 {
		r.rng += 0x9e3779b97f4a7c15
		return mix(r.rng)
	}
	return mix(q.Chain[min(int(c.blocks), len(q.Chain)-1)] ^ c.up.hash)
}

// mix is the output function of SplitMix64 (Steele, Lea, Flood 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// reason says why the candidate at a place was chosen.
func (r *Router) reason(best int) Reason {
	c := &r.candidates[best]
	most := int32(0)
	retry := false
	for i := range r.candidates {
		most = max(most, r.candidates[i].blocks)
		retry = retry || r.candidates[i].tried
	}
	switch {
	case retry:
		return ReasonRetry
	case c.probe:
		return ReasonProbe
	case most == 0:
		return ReasonCold
	case c.blocks < most:
		return ReasonLoad
	}
	return ReasonPrefix
}
