package route

import "math"

// tieBand is how far two costs may be apart, relative to the lesser, to be
// equal within the noise of the estimate.
const tieBand = 0.03

// choose returns the place of the candidate to be chosen.
func (r *Router) choose(q *Request, o *outlook) int {
	best := r.breakTies(q, o.best)
	if o.homes {
		best = r.homeward(best)
	}
	return best
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
	r.tied = r.tied[:0]
	for _, i := range r.weighed {
		if c := &r.candidates[i]; c.cost <= cost && c.rank == lead.rank {
			first, most = min(first, c.first), max(most, c.blocks)
			r.tied = append(r.tied, int(i))
		}
	}
	first *= 1 + tieBand
	var bestScore uint64
	for _, i := range r.tied {
		c := &r.candidates[i]
		if c.first > first {
			continue
		}
		if score := r.score(q, c.up.hash, int(most)); score >= bestScore {
			best, bestScore = i, score
		}
	}
	return best
}

// score ranks an upstream among equals, by rendezvous hashing of the first
// block that none of them holds: each prompt has its own order of upstreams,
// the same in every gateway, which hardly changes when upstreams come or go.
// The blocks before may be a system prompt, whose users must not all follow
// one order. A prompt of less than a block goes anywhere, and so does one that no
// cache is asked for.
func (r *Router) score(q *Request, upstream uint64, held int) uint64 {
	chain := q.sought()
	if len(chain) == 0 {
		r.rng += 0x9e3779b97f4a7c15
		return mix(r.rng)
	}
	return mix(chain[min(held, len(chain)-1)] ^ upstream)
}

// mix is the output function of SplitMix64 (Steele, Lea, Flood 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// reason says why a candidate was chosen.
func (o *outlook) reason(c *candidate) Reason {
	switch {
	case o.retry:
		return ReasonRetry
	case c.probe:
		return ReasonProbe
	case c.home && (o.most == 0 || c.blocks < o.most):
		return ReasonSession
	case o.most == 0:
		return ReasonCold
	case c.blocks < o.most:
		return ReasonLoad
	}
	return ReasonPrefix
}
