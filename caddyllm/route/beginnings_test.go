package route

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// turns are requests of one session, each longer by two blocks than the one before.
func turns(n int, before ...any) (chains [][]uint64) {
	for i := range n {
		chains = append(chains, prompt(append(slices.Clone(before), "session", 10+2*i)...).Chain)
	}
	return chains
}

func TestABeginningIsWhatDifferentPromptsShare(t *testing.T) {
	const upstreams = 8
	var users [][]uint64
	for i := range 30 {
		users = append(users, prompt("system", 20, i, 5).Chain)
	}
	again := slices.Repeat([][]uint64{prompt("whole", 30).Chain}, 20)
	for name, c := range map[string]struct {
		before [][]uint64
		of     *Request
		rest   int
	}{
		"nothing is popular":           {users[:2], prompt("system", 20, "new", 5), 0},
		"a system prompt":              {users, prompt("system", 20, "new", 5), 20},
		"turns of a session":           {turns(20), prompt("session", 60), 0},
		"turns behind a system prompt": {append(turns(10, "system", 20), users...), prompt("system", 20, "session", 60), 20},
		"the very same prompt":         {again, prompt("whole", 30), 29},
		"a session of many blocks":     {turns(20, "session", popularBlocks), prompt("session", popularBlocks+60), 0},
	} {
		var p popularity
		for i, chain := range c.before {
			p.enter(chain, upstreams)
			if i == len(c.before)/2 {
				p.exactly() // what came before counts as what comes later
			}
		}
		rest, begin, carried := p.beginning(c.of.Chain, upstreams)
		if rest != c.rest || begin > rest || (carried > 0) != (rest > 0) {
			t.Errorf("%s: many share %d blocks from %d on, as %d requests do; want %d", name, rest, begin, carried, c.rest)
		}
	}
}

// What is counted is what is in the window, whatever its size becomes, and whoever
// comes and goes while it is counted: as much as a twin counts that knows no pieces.
// And no request that comes, nor the first decision with peers, sees to more than a
// bound: they held up everybody for a seventh of a second.
func TestBeginningsFollowTheWindow(t *testing.T) {
	settled, grown, cut := 0, 0, 0
	for seed := range uint64(12) {
		var p popularity
		rng := rand.New(rand.NewPCG(3, seed))
		long := func(i int) []uint64 {
			return prompt("system", 10, i, 1+rng.IntN(popularBlocks)).Chain
		}
		for i := range 50 {
			p.enter(long(i), 2)
		}
		before := []uint16(nil)
		does := func(what string, most int, do func()) {
			t.Helper()
			high := &p.beginnings.high[0:1:1][0]
			before = append(before[:0], p.beginnings.high...)
			do()
			if high != &p.beginnings.high[0] {
				before = make([]uint16, len(p.beginnings.high)) // a larger one
			}
			changed := 0
			for place, n := range p.beginnings.high {
				d := int(int16(n - before[place]))
				changed += max(d, -d)
			}
			if changed > most {
				t.Fatalf("%s counts %d blocks at once, want at most %d", what, changed, most)
			}
		}
		p.beginnings.high = make([]uint16, 1) // for does to look at
		does("the first decision with peers", beginningsAtOnce, func() {
			p.beginnings.high = nil
			p.exactly()
		})
		n, until := 2, 0
		for i := range 200 {
			// Up and down, to a larger table and not, before what was begun is done and after.
			if i == until {
				n, until = min(n+1+rng.IntN(3), 8), until+1+rng.IntN(8)
				if rng.IntN(2) == 0 {
					n, until = 1+rng.IntN(n), until+rng.IntN(100)
					p.fewer = p.size * rng.IntN(2) // becomes smaller at once, or as always
				}
			}
			left, size := p.beginnings.left, p.size
			does("a request that comes", beginningsAtOnce+2*popularBlocks, func() { p.enter(long(i), n) })
			if p.beginnings.left > left {
				grown++
			} else if left > 0 && p.size < size {
				cut++
			}
			if p.beginnings.left > 0 || len(p.beginnings.gone) > 0 {
				for _, h := range p.window[p.next%len(p.window)][:1] {
					hash := uint64(h) << 32
					if got, most := p.carried(hash), int(p.place(hash).recent()); got > most || got == 0 {
						t.Fatalf("while others are counted, the oldest request's first block is in %d, want at least one and at most the tally's %d", got, most)
					}
				}
				continue
			}
			settled++
			if i%16 != 0 {
				continue
			}
			twin := popularity{beginnings: beginnings{
				high: make([]uint16, len(p.beginnings.high)), low: make([]uint16, len(p.beginnings.low)), shift: p.beginnings.shift,
			}}
			for _, blocks := range p.window {
				twin.beginnings.add(blocks, 1)
			}
			if !slices.Equal(p.beginnings.high, twin.beginnings.high) || !slices.Equal(p.beginnings.low, twin.beginnings.low) {
				t.Fatalf("after %d requests other counts than those of the window's %d", i, len(p.window))
			}
		}
	}
	if settled < 1500 || settled > 2300 || grown < 12 || cut < 3 {
		t.Errorf("all was counted after %d requests, %d times a larger table was begun, and %d times the window became smaller before it was counted: this tests little", settled, grown, cut)
	}
}

// Gateways name the same owner for a session of which each has seen other turns,
// while few other sessions are about.
func TestGatewaysKeepToASessionsOwner(t *testing.T) {
	var owners []string
	for gateway := range 3 {
		d := newDesk(t, 8)
		for turn := range 24 {
			for s := range 6 {
				if (turn+s)%3 == gateway {
					d.serve(prompt("tools", 100, s, 100+5*turn))
				}
			}
		}
		for range peersAfter {
			for i := range d.targets {
				d.scrape(i, 0, 3)
			}
		}
		q := prompt("tools", 100, 3, 100+5*24)
		d.r.Explain(d.now, q, d.targets)
		for i := range d.r.candidates {
			if c := &d.r.candidates[i]; c.owned {
				owners = append(owners, c.up.id)
			}
		}
	}
	if len(owners) != 3 || owners[0] != owners[1] || owners[0] != owners[2] {
		t.Errorf("three gateways name %v", owners)
	}
}
