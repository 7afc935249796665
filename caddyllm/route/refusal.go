package route

import "time"

// A server that refuses what others serve, since it has another model or key, is
// done with each request at once, and so looks like the idlest of all. What it
// turned away would keep it as busy as the others: until it serves again, or for a
// while, it counts as no less busy than they are. That takes no trust away: what
// is refused may be the client's fault.

const (
	// refusedAfter is the number of refusals in a row, with nothing served between,
	// from which they count. One client with a request that nobody serves, sent over
	// and over, has a few in a row at a time, and must not move the others.
	refusedAfter = 16
	// refusedFor is for how long they count.
	refusedFor = probeEvery
)

// burden is what an upstream has to do.
type burden struct {
	queued  float64 // prefill tokens that come before a request sent now
	running float64 // requests that had their first token
}

func (r *Router) refused(now time.Duration, u *upstream) {
	u.refusals = min(u.refusals+1, refusedAfter)
	if u.refusals == refusedAfter {
		u.refusedAt, r.refusedAt = now, now
	}
}

func recently(now, then time.Duration) bool { return now-then >= 0 && now-then < refusedFor }

// findUsual finds the mean burden of the candidates that serve, where one refuses.
// Those that fail or hang have no burden, or one that nothing comes of, and count on
// neither side. Where most refuse, the few others tell nothing of what is usual, and
// those that refuse are told apart by what they have to do.
func (r *Router) findUsual(now time.Duration, o *outlook) {
	o.usual = burden{}
	if !recently(now, r.refusedAt) {
		return
	}
	var all burden
	serving, refusing := 0, 0
	for i := range r.candidates {
		c := &r.candidates[i]
		switch {
		case c.rank != sound || c.probe:
		case recently(now, c.up.refusedAt):
			refusing++
		default:
			serving++
			b := r.broughtTo(c, o)
			ahead, _, _ := c.up.turn(now, c.up.pace, o.apart, r.flights)
			all.queued += b.queued + ahead
			all.running += b.running + float64(c.up.decoding)
		}
	}
	if serving > 0 && serving >= refusing {
		o.usual = burden{all.queued / float64(serving), all.running / float64(serving)}
	}
}

// broughtTo is what others have a candidate do.
func (r *Router) broughtTo(c *candidate, o *outlook) burden {
	if o.peers {
		return burden{c.up.company.queued, c.up.company.running}
	}
	brought := o.unknown
	if c.known {
		brought = c.up.brought
	}
	return burden{brought.waiting * r.answers.work, brought.running}
}
