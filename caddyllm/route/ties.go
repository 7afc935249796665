package route

import "math"

// tieBand is how far two costs may be apart, relative to the lesser, to be
// equal within the noise of the estimate.
const tieBand = 0.03

// choose returns the best candidate's place.
func (r *Router) choose(q *Request) int {
	best := 0
	for i := 1; i < len(r.candidates); i++ {
		c, b := &r.candidates[i], &r.candidates[best]
		if c.rank < b.rank || c.rank == b.rank && c.cost < b.cost {
			best = i
		}
	}
	return r.homeward(r.breakTies(q, best))
}

// homeward keeps a session where it was. What its upstream has of it shows in
// no prompt, so it counts as if that held all of the prompt: it is left only
// for one whose queue is shorter by more than the prompt's own work.
func (r *Router) homeward(best int) int {
	b := &r.candidates[best]
	for i := range r.candidates {
		if c := &r.candidates[i]; c.home && c.rank == b.rank && c.kept <= b.cost {
			return i
		}
	}
	return best
}

// breakTies chooses among the candidates of a rank that are as good as the
// best. Where the best is one for the worth of a copy, those equal that have
// the first token as soon.
func (r *Router) breakTies(q *Request, best int) int {
	lead := r.candidates[best]
	cost, first, most := lead.cost*(1+tieBand), math.Inf(1), int32(0)
	for i := range r.candidates {
		if c := &r.candidates[i]; c.cost <= cost && c.rank == lead.rank {
			first, most = min(first, c.first), max(most, c.blocks)
		}
	}
	first *= 1 + tieBand
	var bestScore uint64
	for i := range r.candidates {
		c := &r.candidates[i]
		if c.cost > cost || c.first > first || c.rank != lead.rank {
			continue
		}
		if score := r.score(q, c.up, int(most)); score >= bestScore {
			best, bestScore = i, score
		}
	}
	return best
}

// score ranks an upstream among equals, by rendezvous hashing of the first
// block that none of them holds: each prompt has its own order of upstreams,
// the same in every gateway, which hardly changes when upstreams come or go.
// The blocks before may be a system prompt, whose users must not all follow
// one order. A prompt of less than a block goes anywhere.
func (r *Router) score(q *Request, u *upstream, held int) uint64 {
	if len(q.Chain) == 0 {
		r.rng += 0x9e3779b97f4a7c15
		return mix(r.rng)
	}
	return mix(q.Chain[min(held, len(q.Chain)-1)] ^ u.hash)
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
		retry = retry || r.candidates[i].rank == tried
	}
	switch {
	case retry:
		return ReasonRetry
	case c.probe:
		return ReasonProbe
	case c.home && (most == 0 || c.blocks < most):
		return ReasonSession
	case most == 0:
		return ReasonCold
	case c.blocks < most:
		return ReasonLoad
	}
	return ReasonPrefix
}
