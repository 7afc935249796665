package route

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// plainly decides as one would write it without caring for time: what is asked
// of each candidate is found for it alone, and each comparison looks at all. It
// returns the candidates, and the place of the chosen one.
func plainly(r *Router, now time.Duration, q *Request, targets []Target) ([]candidate, int) {
	if q.Unread { // as if it were one of which nothing can be held
		alike := *q
		alike.Chain, q = nil, &alike
	}
	all := make([]candidate, len(targets))
	held := make([]int32, len(r.upstreams)+len(targets))
	for i, t := range targets {
		u := r.upstream(now, t.ID)
		all[i] = candidate{up: u, home: t.Home}
		if t.Tried {
			all[i].rank = tried
		}
	}
	r.judgeRates(now)
	for _, h := range r.index.Match(q.Chain) {
		held[h.Upstream] = h.Blocks
	}
	var known []others
	for i := range all {
		c, u := &all[i], all[i].up
		if u.slot >= 0 {
			c.blocks = held[u.slot]
		}
		if c.known = u.known(now); c.known {
			known = append(known, u.brought)
		}
		u.drain(now, u.rate, r.flights)
		u.watch(now, u.rate)
		u.hear(now, r.flights)
		last, probe := u.suspect(now)
		c.probe = probe && !last
		if last && c.rank == sound {
			c.rank = suspect
		}
	}
	var capacities []float64
	for i := range all {
		if capacities = append(capacities, all[i].up.capacity); all[i].up.capacity <= 0 {
			capacities[i] = maxPrompt
		}
	}
	o := outlook{
		prompt: min(r.tokens.of(q.Model)*float64(max(q.Bytes, 0))+float64(max(q.ExtraTokens, 0)), max(slices.Max(capacities), longPrompt), maxPrompt),
		block:  r.blockTokens(q.Model),
		apart:  r.apart.share(),
	}
	for _, b := range known {
		o.unknown.waiting += b.waiting
		o.unknown.running += b.running
	}
	if n := float64(len(known)); n > 0 {
		o.unknown.waiting, o.unknown.running = o.unknown.waiting/n, o.unknown.running/n
	}

	kept := r.candidates
	defer func() { r.candidates = kept }() // Pick goes on with them
	r.candidates = all
	if o.peers = r.peers.count() > 1; o.peers {
		r.popular.exactly()
	}
	r.weights = plainWeights(r, q)
	if o.peers {
		r.foreknow(now, q, &o)
	}
	r.findUsual(now, &o)
	o.least = math.Inf(1)
	for i := range all {
		o.least = min(o.least, r.own(&all[i], &o).worth)
	}
	best := 0
	for i := range all {
		c := &all[i]
		alone := o
		alone.blocks, alone.least = -1, 0
		var t terms
		r.terms(now, c, &alone, &t)
		spared := (1 - unavoidable) * o.least * t.strain
		c.cost, c.first = t.cost-spared, t.first
		if c.home {
			c.kept = t.cost - t.delay - t.again - (t.worth-requestWork)*(1/c.up.rate+t.strain+t.coming) - spared
		}
		if c.rank < all[best].rank || c.rank == all[best].rank && c.cost < all[best].cost {
			best = i
		}
	}
	return all, plainTie(r, q, all, best)
}

// plainWeights are the sums of what the blocks behind each are worth.
func plainWeights(r *Router, q *Request) []float64 {
	n := min(len(q.Chain), popularBlocks)
	popular := func(i int) float64 {
		if r.popular.size == 0 {
			return 0 // no request was counted yet
		}
		t := *r.popular.place(q.Chain[i])
		if r.peers.count() > 1 {
			t = r.popular.exact(q.Chain[i], t)
		}
		return r.popular.demand(t, float64(len(r.candidates)))
	}
	weights := make([]float64, n+1)
	for from := range weights {
		for i := n - 1; i >= from; i-- { // from the end, as floats add up differently
			holders := 0.0
			for _, c := range r.candidates {
				if int(c.blocks) > i {
					holders++
				}
			}
			excess := popular(i)
			for before := range i {
				if popular(before) <= 0 {
					excess = 0
				}
			}
			if holders > 0 && excess > 0 {
				weights[from] += holders / (holders + replication*excess)
			} else {
				weights[from]++
			}
		}
	}
	return weights
}

func plainTie(r *Router, q *Request, all []candidate, best int) int {
	lead := all[best]
	equal := func(c candidate) bool { return c.rank == lead.rank && c.cost <= lead.cost*(1+tieBand) }
	first, most := math.Inf(1), int32(0)
	for _, c := range all {
		if equal(c) {
			first, most = min(first, c.first), max(most, c.blocks)
		}
	}
	chosen, highest := best, uint64(0)
	for i, c := range all {
		if !equal(c) || c.first > first*(1+tieBand) {
			continue
		}
		if score := r.score(q, c.up.hash, int(most)); score >= highest {
			chosen, highest = i, score
		}
	}
	for i, c := range all {
		if c.home && c.rank == all[chosen].rank && c.kept <= all[chosen].cost {
			return i
		}
	}
	return chosen
}

// Whatever the state, Pick chooses as the plain decision does, and to the same
// costs.
func testAgainstPlain(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 11))
	d := newDesk(t, 1+rng.IntN(20))
	all := d.targets
	var open []Choice
	calm := seed%4 == 2 // pages are sane, answers come soon, and targets stay
	if calm {
		for i := range all {
			d.scrape(i, 0, 0)
		}
	}
	if seed%3 == 0 { // other gateways are about
		d.r.peers.pages, d.r.peers.foreign = peersAfter, 1e9
		d.r.peers.sharing, d.r.peers.owning, d.r.peers.ending, d.r.peers.begun = 0.9, 0.9, 0.9, 0.7
	}
	for step := range 300 {
		// Who comes second to the lock may have read the clock first.
		d.now = d.now.Add(time.Duration(rng.IntN(105)-5) * time.Millisecond)
		id := all[rng.IntN(len(all))].ID
		switch rng.IntN(8) {
		case 0:
			var l *Load
			if !calm {
				l = oddPage(rng)
			}
			if l == nil {
				l = &Load{
					Waiting: Known(float64(rng.IntN(4))), Running: Known(float64(rng.IntN(9))),
					KVUsage: Known(rng.Float64()), CapacityTokens: Known(float64(rng.IntN(20_000))),
				}
			}
			d.r.Scraped(d.now, id, l)
		case 1, 2, 3:
			if len(open) > 0 {
				d.r.FirstByte(d.now, open[rng.IntN(len(open))].Ticket)
			}
		case 4:
			if len(open) > 0 {
				c := open[rng.IntN(len(open))]
				if step%2 == 0 {
					d.refusedBefore(c)
				}
				d.r.Done(d.now, c.Ticket, End(rng.IntN(4)), nil)
			}
		default:
			if calm && rng.IntN(4) > 0 {
				for i := range d.targets {
					d.targets[i].Tried, d.targets[i].Home = rng.IntN(50) == 0, rng.IntN(50) == 0
				}
			} else {
				d.targets = nil
				for _, target := range all {
					if rng.IntN(10) > 0 {
						twice := 1 + rng.IntN(20)/19 // a pool may have one in it twice
						for range twice {
							d.targets = append(d.targets, Target{ID: target.ID, Tried: rng.IntN(8) == 0, Home: rng.IntN(8) == 0})
						}
					}
				}
			}
			if len(d.targets) == 0 {
				continue
			}
			q := oddPrompt(rng)
			now := d.r.clock.at(d.now)
			// Once a minute Pick looks what to forget.
			d.r.sweep(now)
			chance := d.r.rng
			want, place := plainly(d.r, now, q, d.targets)
			d.r.rng = chance
			got := d.pick(q)
			best := slices.MinFunc(want, func(a, b candidate) int {
				return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.cost, b.cost))
			})
			for i, c := range d.r.candidates {
				w := want[i]
				if math.IsInf(c.cost, 1) {
					// It was not looked at, since it can't be chosen.
					c.cost, c.first = w.cost, w.first
					if c.home || w.rank < best.rank || w.rank == best.rank && w.cost <= best.cost*(1+tieBand) {
						t.Fatalf("seed %d, step %d: candidate %d is passed over, and may be as good as the best: %+v, %+v", seed, step, i, w, best)
					}
				}
				if math.Abs(c.cost-w.cost) > 1e-12*math.Abs(w.cost) || c.first != w.first || c.blocks != w.blocks || c.rank != w.rank || c.known != w.known || c.probe != w.probe || c.owned != w.owned || c.shares != w.shares {
					t.Fatalf("seed %d, step %d: candidate %d is %+v, plainly %+v", seed, step, i, c, w)
				}
			}
			if got.Index != place {
				t.Fatalf("seed %d, step %d: Pick chooses %d, plainly %d", seed, step, got.Index, place)
			}
			if calm && rng.IntN(4) > 0 {
				d.r.FirstByte(d.now, got.Ticket)
				d.r.Done(d.now, got.Ticket, Completed, nil)
			}
			open = append(open, got)
		}
	}
}

func TestPickChoosesAsPlainly(t *testing.T) {
	for seed := range uint64(60) {
		testAgainstPlain(t, seed)
	}
}

// Who shares a popular beginning with others holds more than what we know of, and
// was passed over as if it held nothing.
func TestWhoSharesIsNotPassedOver(t *testing.T) { testAgainstPlain(t, 813) }
