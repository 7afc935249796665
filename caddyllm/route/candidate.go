package route

import (
	"slices"
	"time"
)

// candidate is a target, as far as all of them are compared.
type candidate struct {
	up     *upstream
	cost   float64 // seconds; infinite where it is certain that another is chosen
	first  float64 // expected time to the first token, seconds
	kept   float64 // of a home: cost if it held all of the prompt, seconds
	blocks int32   // leading blocks held
	rank   rank
	probe  bool
	known  bool // its page counts
	shares bool // peers would choose it among others, for what is popular of the prompt
	owned  bool // peers would choose it
	home   bool // of the request's session
}

// rank comes before cost.
type rank uint8

const (
	sound   rank = iota
	suspect      // only if there is no other
	tried        // by this request before: last of all
)

// hint is where a target's upstream was found the last time.
type hint struct {
	id string
	up *upstream // nil: nothing is learned about it
}

// is reports whether the hint is of a target. Pools hardly change, and comparing
// a string with itself is quick.
func (h *hint) is(id string) bool { return h.up != nil && h.id == id }

// gather fills r.candidates, one for each target.
func (r *Router) gather(now time.Duration, targets []Target) {
	r.candidates = slices.Grow(r.candidates[:0], len(targets))[:len(targets)]
	changed := len(r.hints) != len(targets)
	if changed {
		r.saw()
		for len(r.hints) < len(targets) {
			r.hints = append(r.hints, hint{})
		}
		r.hints = r.hints[:len(targets)]
	}
	for i := range targets {
		t := &targets[i]
		h := &r.hints[i]
		u := h.up
		if !h.is(t.ID) {
			if !changed {
				r.saw()
				changed = true
			}
			*h = hint{}
			if u = r.upstream(now, t.ID); u.slot >= 0 {
				*h = hint{t.ID, u}
			}
		}
		r.candidates[i] = candidate{up: u, rank: t.rank(), home: t.Home}
	}
	r.offered = now
}

// saw notes on the upstreams of the last targets that they were offered. It is
// done where others take their place, and before somebody asks.
func (r *Router) saw() {
	for i := range r.hints {
		if u := r.hints[i].up; u != nil {
			u.seen = max(u.seen, r.offered)
		}
	}
}

func (t *Target) rank() rank {
	if t.Tried {
		return tried
	}
	return sound
}

// look finds the state of each candidate and what it holds of the prompt, counts
// the holders of each of the popular blocks, and takes the one that holds most for
// the best so far.
func (r *Router) look(now time.Duration, o *outlook) {
	n := len(r.demands)
	r.holders = slices.Grow(r.holders[:0], n+1)[:n+1]
	clear(r.holders)
	known, holding, lead := 0, 0, &r.candidates[0]
	for i := range r.candidates {
		c := &r.candidates[i]
		u := c.up
		if u.slot >= 0 {
			if c.blocks = r.held[u.slot]; c.blocks > 0 {
				r.holders[min(int(c.blocks), n)]++
				holding++
				o.most = max(o.most, c.blocks)
			}
		}
		if c.known = u.known(now); c.known {
			known++
		}
		if c.rank == tried {
			o.retry = true
		}
		if c.home {
			o.homes = true
		}
		if len(u.queue) > 0 {
			u.drain(now, u.rate, r.flights)
			u.watch(now, u.rate)
			u.hear(now, r.flights)
		}
		if u.failures > 0 || u.stalled || u.asleep {
			last, probe := u.suspect(now)
			c.probe = probe && !last
			if last {
				c.rank = max(c.rank, suspect)
			}
		}
		if c.rank < lead.rank || c.rank == lead.rank && c.blocks > lead.blocks {
			o.best, lead = i, c
		}
	}
	r.holders[0] += int32(len(r.candidates) - holding)
	if known > 0 && known < len(r.candidates) {
		o.unknown = r.guess(float64(known))
	}
}

// guess is what others bring to an upstream whose load is unknown: what they
// bring to the mean of those that are known. An upstream that can't be seen must
// not look idle beside busy ones.
func (r *Router) guess(known float64) others {
	var sum others
	for i := range r.candidates {
		if c := &r.candidates[i]; c.known {
			sum.waiting += c.up.brought.waiting
			sum.running += c.up.brought.running
		}
	}
	return others{waiting: sum.waiting / known, running: sum.running / known}
}

// match finds how many leading blocks of a chain each upstream holds.
func (r *Router) match(chain []uint64) {
	if n := len(r.upstreams); n > len(r.held) {
		r.held = make([]int32, n+n/4)
	}
	r.index.Match(chain, r.held[:len(r.upstreams)])
}
