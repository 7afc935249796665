package rivals

import (
	"slices"
	"time"
)

// ring is a consistent hash of upstreams with virtual nodes.
type ring struct {
	points []point // by hash
}

type point struct {
	hash uint64
	up   int
}

func newRing(upstreams, virtual int) *ring {
	r := &ring{}
	for u := range upstreams {
		for v := range virtual {
			r.points = append(r.points, point{mix(uint64(u)<<32 | uint64(v) + 1), u})
		}
	}
	slices.SortFunc(r.points, func(a, b point) int {
		if a.hash < b.hash {
			return -1
		}
		return 1
	})
	return r
}

// walk visits the upstreams from the key's place on, with repetitions, until
// accept says yes, and returns who it was; -1 for nobody.
func (r *ring) walk(key uint64, accept func(up int) bool) int {
	at, _ := slices.BinarySearchFunc(r.points, key, func(p point, key uint64) int {
		if p.hash < key {
			return -1
		}
		return 1
	})
	for i := range r.points {
		if p := r.points[(at+i)%len(r.points)]; accept(p.up) {
			return p.up
		}
	}
	return -1
}

// place finds an upstream among targets, -1 if it isn't there or was tried.
func place(targets []Target, up int) int {
	for i, t := range targets {
		if t.Upstream == up && !t.Tried {
			return i
		}
	}
	return -1
}

// total is the number of own requests in flight on the targets.
func (b *book) total(targets []Target) int {
	n := 0
	for _, t := range targets {
		n += b.up[t.Upstream].inFlight
	}
	return n
}

// chwbl is KubeAI's consistent hashing with bounded loads (balance_chwbl.go):
// the key is the beginning of the first user message (user=0: of the prompt, so
// that system prompts count), and a walk round the ring
// finds the first upstream whose load is at most factor times the mean.
// Generous: a failed upstream isn't tried again, as KubeAI's retry does.
type chwbl struct {
	book
	ring   *ring
	prefix int
	user   bool
	factor float64
}

func newCHWBL(env Env, s settings) Policy {
	return &chwbl{newBook(env), newRing(env.Upstreams, int(s["vnodes"])), int(s["key"]), s["user"] > 0, s["factor"]}
}

func (p *chwbl) Pick(now time.Duration, q *Request, targets []Target) int {
	bound := p.factor * float64(p.total(targets)+1) / float64(len(targets))
	key := q.UserKey(p.prefix)
	if chain := q.Chain(p.prefix); !p.user && len(chain) > 0 {
		key = chain[0]
	}
	best := place(targets, p.ring.walk(mix(key), func(up int) bool {
		return place(targets, up) >= 0 && float64(p.up[up].inFlight) <= bound
	}))
	if best < 0 {
		best = firstUntried(targets)
	}
	p.send(now, q, targets[best].Upstream, 0, 0)
	return best
}

func firstUntried(targets []Target) int {
	for i, t := range targets {
		if !t.Tried {
			return i
		}
	}
	return 0
}

// prefixHash is smg's prefix_hash (prefix_hash.rs): a ring lookup of the first
// kilobyte, unless that upstream's load exceeds both factor times the mean and
// the mean and abs more; then the least loaded. A factor of 0 is a plain hash.
type prefixHash struct {
	book
	chance
	ring        *ring
	bytes       int
	factor, abs float64
}

func newPrefixHash(env Env, s settings) Policy {
	return &prefixHash{newBook(env), chance{env.Seed}, newRing(env.Upstreams, 160), int(s["bytes"]), s["factor"], s["abs"]}
}

func (p *prefixHash) Pick(now time.Duration, q *Request, targets []Target) int {
	key := q.UserKey(p.bytes)
	if chain := q.Chain(p.bytes); len(chain) > 0 {
		key = chain[0]
	}
	best := place(targets, p.ring.walk(mix(key), func(up int) bool { return place(targets, up) >= 0 }))
	if best < 0 {
		best = 0
	}
	mean := float64(p.total(targets)+1) / float64(len(targets))
	bound := max(mean*p.factor, mean+p.abs)
	if p.factor > 0 && float64(p.up[targets[best].Upstream].inFlight) > bound {
		best = least(targets, &p.chance, func(up int) float64 { return float64(p.up[up].inFlight) })
	}
	p.send(now, q, targets[best].Upstream, 0, 0)
	return best
}
