package rivals

import "time"

// The policies that know nothing of prompts, as Caddy and nginx have them.

// random picks any upstream.
type random struct {
	book
	chance
}

func newRandom(env Env, _ settings) Policy { return &random{newBook(env), chance{env.Seed}} }

func (p *random) Pick(now time.Duration, q *Request, targets []Target) int {
	best := least(targets, &p.chance, func(int) float64 { return 0 })
	p.send(now, q, targets[best].Upstream, 0, 0)
	return best
}

// roundRobin goes round.
type roundRobin struct {
	book
	next int
}

func newRoundRobin(env Env, _ settings) Policy {
	return &roundRobin{newBook(env), int(env.Seed % 1000)}
}

func (p *roundRobin) Pick(now time.Duration, q *Request, targets []Target) int {
	for range targets {
		p.next++
		if !targets[p.next%len(targets)].Tried {
			break
		}
	}
	best := p.next % len(targets)
	p.send(now, q, targets[best].Upstream, 0, 0)
	return best
}

// leastConn picks the upstream with the fewest own requests in flight.
type leastConn struct {
	book
	chance
}

func newLeastConn(env Env, _ settings) Policy { return &leastConn{newBook(env), chance{env.Seed}} }

func (p *leastConn) Pick(now time.Duration, q *Request, targets []Target) int {
	best := least(targets, &p.chance, func(up int) float64 { return float64(p.up[up].inFlight) })
	p.send(now, q, targets[best].Upstream, 0, 0)
	return best
}

// p2c picks the less loaded of two (Mitzenmacher 1996).
type p2c struct {
	book
	chance
}

func newP2C(env Env, _ settings) Policy { return &p2c{newBook(env), chance{env.Seed}} }

func (p *p2c) Pick(now time.Duration, q *Request, targets []Target) int {
	a := p.below(len(targets))
	b := a
	if len(targets) > 1 {
		b = (a + 1 + p.below(len(targets)-1)) % len(targets)
	}
	if targets[a].Tried && !targets[b].Tried || targets[a].Tried == targets[b].Tried &&
		p.up[targets[b].Upstream].inFlight < p.up[targets[a].Upstream].inFlight {
		a = b
	}
	p.send(now, q, targets[a].Upstream, 0, 0)
	return a
}
