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
	var bestBlocks int32 = -1
	for i := range r.candidates {
		c := &r.candidates[i]
		if rank(c) != wanted || c.cost > limit {
			continue
		}
		// Among equals, what is held counts: it saves the engine work that
		// the next request would wait for.
		if score := r.score(q, c.up); c.blocks > bestBlocks || c.blocks == bestBlocks && score > bestScore {
			best, bestBlocks, bestScore = i, c.blocks, score
		}
	}
	return best
}

// score ranks an upstream among equals. By rendezvous hashing, each prompt has
// its own order of upstreams, the same in every gateway, which hardly changes
// when upstreams come or go. A prompt of less than a block goes anywhere.
func (r *Router) score(q *Request, u *upstream) uint64 {
	if len(q.Chain) == 0 {
		r.rng += 0x9e3779b97f4a7c15
		return mix(r.rng)
	}
	return mix(q.Chain[0] ^ u.hash)
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
