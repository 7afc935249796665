package route

import (
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

// What is counted is what is in the window, whatever its size becomes.
func TestBeginningsFollowTheWindow(t *testing.T) {
	var p popularity
	p.enter(prompt("first", 20).Chain, 2)
	p.exactly()
	for i := range 3000 {
		p.enter(prompt("system", 10, i, i%7).Chain, []int{2, 9, 4}[i/1000])
	}
	want := popularity{size: p.size, window: p.window}
	want.exactly()
	for _, chain := range [][]uint64{prompt("system", 10, 2999, 2999%7).Chain, prompt("first", 20).Chain} {
		for i, h := range chain {
			if got, want := p.beginnings.count(h), want.beginnings.count(h); got != want {
				t.Errorf("block %d is in %d requests, want %d", i, got, want)
			}
		}
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
