package route

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Whom a decision leaves alone, since there is nothing to see to, is as it would be
// if every decision had looked: a router that sees to all upstreams each time
// chooses the same and predicts the same.
func testCalm(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	lazy := newDesk(t, 1+rng.IntN(20))
	busy := newDesk(t, len(lazy.targets))
	both := [...]*desk{lazy, busy}
	for _, d := range both {
		d.r.peers.pages = math.MinInt32 // with peers nothing is calm
	}
	unstreamed := rng.IntN(4) // of ten
	mostly := 1 + rng.IntN(200)
	type request struct{ at [2]Choice }
	var open []request
	for step := range 600 {
		later := time.Duration(rng.IntN(mostly)) * time.Millisecond
		if rng.IntN(100) == 0 {
			later = time.Duration(rng.IntN(9000)) * time.Millisecond
		}
		for _, d := range both {
			d.now = d.now.Add(later)
		}
		i := rng.IntN(len(lazy.targets))
		switch kind := rng.IntN(10); {
		case kind < 2:
			page := &Load{
				Waiting: Known(float64(rng.IntN(4))), Running: Known(float64(rng.IntN(9))), KVUsage: Known(rng.Float64()),
				CapacityTokens: Known(20_000), OutputTokens: Known(float64(step / 50)),
			}
			if rng.IntN(20) == 0 {
				page = oddPage(rng)
			}
			for _, d := range both {
				if page != nil {
					d.r.Scraped(d.now, d.targets[i].ID, page)
				}
			}
		case kind < 7 && len(open) > 0:
			n := rng.IntN(len(open))
			what, end, gap := rng.IntN(5), End(rng.IntN(4)), time.Duration(rng.IntN(60))*time.Millisecond
			if rng.IntN(4) > 0 {
				end = Completed
			}
			for k, d := range both {
				c := open[n].at[k]
				switch what {
				case 0, 1:
					d.r.FirstByte(d.now, c.Ticket)
				case 2:
					c.Pulse.Beat(d.now, gap)
				default:
					if step%2 == 0 {
						d.refusedBefore(c)
					}
					d.r.Done(d.now, c.Ticket, end, nil)
				}
			}
			if what > 2 {
				open[n] = open[len(open)-1]
				open = open[:len(open)-1]
			}
		default:
			q := prompt(rng.IntN(20), rng.IntN(40))
			q.Stream = rng.IntN(10) >= unstreamed
			home := rng.IntN(10*len(lazy.targets)) == 0
			busy.r.saw()
			for _, u := range busy.r.upstreams {
				u.stir()
			}
			var r request
			for k, d := range both {
				d.targets[i].Home = home
				r.at[k] = d.pick(q)
				d.targets[i].Home = false
			}
			open = append(open, r)
			a, b := r.at[0], r.at[1]
			if a.Pulse, b.Pulse = nil, nil; a != b {
				t.Fatalf("seed %d, step %d: %+v, and if all are seen to %+v", seed, step, a, b)
			}
		}
	}
}

func TestWhomNobodyLooksAtIsAsIfLookedAt(t *testing.T) {
	for seed := range uint64(200) {
		testCalm(t, seed)
	}
}
