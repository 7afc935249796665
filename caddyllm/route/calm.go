package route

import (
	"math/bits"
	"slices"
	"time"
)

// Of hundreds of upstreams most hold nothing of a prompt, and have nothing to see
// to: they are calm, whatever they have to do. Their candidates are alike and stay
// from one decision to the next, so that a decision takes time for the others alone.

// calm says which of the last targets have something to see to, and until when the
// others have not.
type calm struct {
	stirred positions
	until   []time.Duration // by position, for those that aren't stirred
	next    time.Duration   // until then none of these stirs by itself
}

// begin has n targets, all of them stirred.
func (c *calm) begin(n int) {
	c.stirred = c.stirred.none(n)
	c.stirred.addAll(n)
	c.until = slices.Grow(c.until[:0], n)[:n]
	c.next = -never
}

// wake stirs those whose calm has ended by now.
func (c *calm) wake(now time.Duration) {
	if now <= c.next {
		return
	}
	c.next = -never
	for i, until := range c.until {
		switch {
		case c.stirred.has(i):
		case now > until:
			c.stirred.add(i)
		default:
			c.next = min(c.next, until)
		}
	}
}

// stir ends an upstream's calm.
func (u *upstream) stir() {
	if u.at != nowhere {
		u.calm.stirred.add(int(u.at))
	}
}

// calmDown makes an upstream calm if there is nothing to see to: as long as its page
// counts, or until the next one, and no longer than its queue can be left alone.
func (u *upstream) calmDown(now time.Duration, flights []flight) {
	until := -never
	switch {
	case u.failures > 0 || u.stalled || u.asleep || u.slot < 0:
		return
	case u.known(now):
		until = u.pageCount
	case now <= u.pageCount:
		return
	}
	if len(u.queue) > 0 {
		until = min(until, u.quiet(flights))
	}
	if now > until {
		return
	}
	u.calm.stirred.remove(int(u.at))
	u.calm.until[u.at] = until
	u.calm.next = min(u.calm.next, until)
}

// positions are a set of places in the targets.
type positions []uint64

// none is the empty set of places below n, in the same memory if that is enough.
func (p positions) none(n int) positions {
	words := (n + 63) / 64
	p = slices.Grow(p[:0], words)[:words]
	clear(p)
	return p
}

func (p positions) has(i int) bool { return p[i/64]&(1<<(i%64)) != 0 }
func (p positions) add(i int)      { p[i/64] |= 1 << (i % 64) }
func (p positions) remove(i int)   { p[i/64] &^= 1 << (i % 64) }

// addAll adds all below n.
func (p positions) addAll(n int) {
	for i := range p {
		p[i] = 1<<min(n-64*i, 64) - 1
	}
}

// list appends them to a list, in order.
func (p positions) list(all []int32) []int32 {
	for i, word := range p {
		for ; word != 0; word &= word - 1 {
			all = append(all, int32(64*i+bits.TrailingZeros64(word)))
		}
	}
	return all
}

// missing is the first of n places that isn't among them; n if all are.
func (p positions) missing(n int) int {
	for i, word := range p {
		if word != 1<<64-1 {
			return min(64*i+bits.TrailingZeros64(^word), n)
		}
	}
	return n
}
