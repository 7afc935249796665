package route

import "sort"

// A page tells how much KV cache there is, and which part of it is in use. What
// this gateway's own running requests take is known without it, and is in that
// part: an engine that has 10 % in use while our requests take 40,000 tokens has
// room for 400,000 at least, whatever its page tells. One that is believed to be
// smaller than it is seems to have no room, and to have evicted what it holds.
//
// The other way round nothing follows: what is in use beyond our own is somebody
// else's. An engine that holds less than it tells shows that by hits that miss.

// gauge compares the two over pages, older ones counting less.
type gauge struct {
	own   float64 // KV tokens of own running requests
	used  float64 // parts in use, 0 to 1 each
	pages int
}

const (
	// gaugeMemory is what a page's weight falls to with each later one.
	gaugeMemory = 0.95
	// gaugeAfter is the number of pages, and gaugeUsed the sum of their parts in
	// use, from which they are believed. A page with less than gaugeLeast in use
	// doesn't count: a few requests that were counted a moment apart are most of it.
	gaugeAfter = 3
	gaugeUsed  = 0.1
	gaugeLeast = 0.02
	// gaugeBand is by what factor it must be more than is told. What own requests
	// take is an estimate: of answers half is taken to be generated. In replays of nine workloads at
	// 70 % of the knee it is 0.81 to 1.28 times what is in use.
	gaugeBand = 1.5
	gaugeMax  = 8
)

// note takes in a page that moved.
func (g *gauge) note(own float64, used Num) {
	if !used.Known || used.Value < gaugeLeast {
		return
	}
	g.own = g.own*gaugeMemory + own
	g.used = g.used*gaugeMemory + used.Value
	g.pages++
}

// capacity is what is believed of a capacity that a page tells, tokens.
func (g *gauge) capacity(told float64) float64 {
	if g.pages < gaugeAfter || g.used < gaugeUsed {
		return told
	}
	if most := g.own / g.used; most > told*gaugeBand {
		return min(most, told*gaugeMax)
	}
	return told
}

// running is the KV tokens that own streams take by now, at least.
func (r *Router) running(u *upstream) float64 {
	return max(u.alone-float64(u.decoding)*r.answers.tokens/2, 0)
}

// companions is how many of an upstream's last streams are looked at for what
// they share with another: many who ask about one document come together.
const companions = 16

// common is what a request shares with one of the last streams of its upstream,
// tokens.
func (r *Router) common(u *upstream, f *flight) float64 {
	most := 0
	for _, k := range u.kept[max(len(u.kept)-companions, 0):] {
		g := &r.flights[k.place]
		if g.up != u || g.generation != k.generation {
			continue // it has ended
		}
		n := min(len(f.chain), len(g.chain))
		if most < n && f.chain[most] == g.chain[most] {
			most += sort.Search(n-most, func(i int) bool { return f.chain[most+i] != g.chain[most+i] })
		}
	}
	return float64(most) * r.blockTokens(f.model)
}
