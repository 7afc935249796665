package route

import (
	"math"
	"slices"
	"time"
	"unsafe"
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

// same reports whether two names are one. Pools hardly change, so that their names
// are the very same strings each time: of 512 that is found out in a quarter of the
// time that comparing them takes.
func same(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b)
}

// meet finds the upstreams of the targets. Those that aren't known begin to be
// known where they are offered, and are otherwise made up.
func (r *Router) meet(now time.Duration, targets []Target, offered bool) {
	if !r.met(targets) {
		r.saw()
		r.seek(now, targets, offered)
		r.offered = never
	}
	if offered {
		r.offered = now
	}
}

// met reports whether the targets are those that were met last, and finds those of
// which the request itself tells something.
func (r *Router) met(targets []Target) bool {
	if len(r.ids) != len(targets) || r.strangers {
		return false
	}
	r.told = r.told[:0]
	for i, id := range r.ids {
		t := &targets[i]
		if !same(id, t.ID) {
			return false
		}
		if t.Tried || t.Home {
			r.told = append(r.told, int32(i))
		}
	}
	return true
}

// seek fills r.ids and r.candidates, one for each target. All of them are stirred,
// since they were looked at last at a time that may be later.
func (r *Router) seek(now time.Duration, targets []Target, offered bool) {
	r.forgetTargets()
	r.strangers = false
	r.calm.begin(len(targets))
	for i := range targets {
		id := targets[i].ID
		u := r.find(now, id, offered)
		r.strangers = r.strangers || u.slot < 0 || u.at != nowhere
		u.at = int32(i)
		c := unmoved(u, u.known(now))
		if c.known {
			r.known++
		}
		r.ids, r.candidates = append(r.ids, id), append(r.candidates, c)
	}
}

func (r *Router) forgetTargets() {
	for i := range r.candidates {
		r.candidates[i].up.at = nowhere
	}
	clear(r.ids)
	clear(r.candidates)
	r.ids, r.candidates, r.told = r.ids[:0], r.candidates[:0], r.told[:0]
	r.stirred, r.weighed, r.known = r.stirred[:0], r.weighed[:0], 0
}

// find is what is known of an ID, or something of which nothing is.
func (r *Router) find(now time.Duration, id string, offered bool) *upstream {
	if offered {
		return r.upstream(now, id)
	}
	if slot, ok := r.slots[id]; ok {
		return r.upstreams[slot]
	}
	return r.newUpstream(id, -1, now)
}

// saw notes on the upstreams of the last targets that they were offered. It is
// done where others take their place, and before somebody asks.
func (r *Router) saw() {
	for i := range r.candidates {
		u := r.candidates[i].up
		u.seen = max(u.seen, r.offered)
	}
}

// unmoved is the candidate of a calm upstream that holds nothing of the prompt.
func unmoved(u *upstream, known bool) candidate {
	return candidate{up: u, cost: math.Inf(1), first: math.Inf(1), known: known}
}

// look brings the candidates that aren't unmoved up to date: the state of their
// upstreams and what these hold of the prompt. It counts the holders of each of the
// popular blocks, and takes the candidate that holds most for the best so far. With
// peers no upstream counts as calm.
func (r *Router) look(now time.Duration, targets []Target, o *outlook) {
	for _, some := range [...][]int32{r.stirred, r.weighed} {
		for _, i := range some {
			c := &r.candidates[i]
			*c = unmoved(c.up, c.known)
		}
	}
	r.stirred, r.weighed = r.stirred[:0], r.weighed[:0]
	r.findStirred(now, len(targets), o.peers)

	n := len(r.demands)
	r.holders = slices.Grow(r.holders[:0], n+1)[:n+1]
	clear(r.holders)
	holding := 0
	o.best = -1
	for _, i := range r.stirred {
		t, c := &targets[i], &r.candidates[i]
		r.seeTo(now, t, c)
		o.retry = o.retry || t.Tried
		o.homes = o.homes || t.Home
		if c.blocks > 0 {
			r.holders[min(int(c.blocks), n)]++
			holding++
			o.most = max(o.most, c.blocks)
		}
		r.lead(o, int(i))
	}
	r.holders[0] += int32(len(targets) - holding)
	if i := r.moved.missing(len(targets)); i < len(targets) { // the first of the unmoved
		r.lead(o, i)
	}
	if r.known > 0 && r.known < len(targets) {
		o.unknown = r.guess(float64(r.known))
	}
}

// findStirred finds which of n targets may be more than unmoved.
func (r *Router) findStirred(now time.Duration, n int, peers bool) {
	r.calm.wake(now)
	if r.moved = r.moved.none(n); peers {
		r.moved.addAll(n)
	} else {
		copy(r.moved, r.calm.stirred)
		for _, h := range r.held {
			if u := r.upstreams[h.Upstream]; u.at != nowhere {
				r.moved.add(int(u.at))
			}
		}
		for _, i := range r.told {
			r.moved.add(int(i))
		}
	}
	r.stirred = r.moved.list(r.stirred)
}

// lead takes a candidate for the best so far if it is more likely to be than that:
// of a better rank, or else if it holds more, or else if it is the first.
func (r *Router) lead(o *outlook, i int) {
	if o.best < 0 {
		o.best = i
		return
	}
	c, best := &r.candidates[i], &r.candidates[o.best]
	if c.rank < best.rank || c.rank == best.rank && (c.blocks > best.blocks || c.blocks == best.blocks && i < o.best) {
		o.best = i
	}
}

// seeTo brings an unmoved candidate up to date.
func (r *Router) seeTo(now time.Duration, t *Target, c *candidate) {
	u := c.up
	if known := u.known(now); known != c.known {
		c.known = known
		if known {
			r.known++
		} else {
			r.known--
		}
	}
	c.home = t.Home
	if t.Tried {
		c.rank = tried
	}
	c.blocks = u.blocks
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
	u.calmDown(now, r.flights)
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
	for _, h := range r.held {
		if u := r.upstreams[h.Upstream]; u != nil { // it may be forgotten since
			u.blocks = 0
		}
	}
	r.held = append(r.held[:0], r.index.Match(chain)...)
	for _, h := range r.held {
		r.upstreams[h.Upstream].blocks = h.Blocks
	}
}
