package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// kind is what goes wrong with a server.
type kind string

const (
	killed  kind = "killed"  // the process dies, and comes back at its address with nothing in its cache
	stopped kind = "stopped" // the process stands still: connections are taken, nothing is answered
	hung    kind = "hung"    // requests are taken in and never answered; pages are
	paused  kind = "paused"  // the engine stands still behind a server that answers
	slowed  kind = "slowed"  // by a factor of eight
	flapped kind = "flapped" // connections are cut and refused, off and on
	restart kind = "restart" // as by its operator: connections are cut, the cache is empty
	busy    kind = "busy"    // 503 with a Retry-After
	limited kind = "limited" // 429 with an absurd one
	closed  kind = "closed"  // connections are closed before the body is read
	cut     kind = "cut"     // streams are cut after some tokens
	early   kind = "early"   // streams are cut before the first token
	hostile kind = "hostile" // the page of metrics is nonsense
	frozen  kind = "frozen"  // the page stands still
)

var kinds = []kind{killed, stopped, hung, paused, slowed, flapped, restart, busy, limited, closed, cut, early, hostile, frozen}

// cuts reports whether streams that are under way end with the trouble's
// beginning, or during it. Their header has gone out by then, if nothing else:
// a server sends it as soon as it has taken the request.
func (k kind) cuts() bool {
	switch k {
	case killed, flapped, restart, cut, early, stopped, hung, paused:
		// The last three end when it is over, some by being cut.
		return true
	}
	return false
}

// trouble is what happens to one server.
type trouble struct {
	kind   kind
	server int
	at     time.Duration // since the beginning
	lasts  time.Duration
	seed   uint64 // of details
}

// settle is how long a server counts as in trouble after it is over, so that
// those who are well are really well.
const settle = time.Second

// write plans the trouble of a run of that length: each kind at least once if
// there is time for it, at most sick servers at once, one trouble for each at a
// time.
func write(rng *rand.Rand, length time.Duration) []trouble {
	var script []trouble
	var order []kind
	until := make([]time.Duration, servers)
	for at := time.Second; at < length; at += time.Duration(300+rng.IntN(900)) * time.Millisecond {
		var well []int
		for i, u := range until {
			if u <= at {
				well = append(well, i)
			}
		}
		if len(well) <= servers-sick {
			continue
		}
		if len(order) == 0 {
			order = slices.Clone(kinds)
			rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		t := trouble{
			kind: order[0], server: well[rng.IntN(len(well))], at: at,
			lasts: time.Duration(1500+rng.IntN(4000)) * time.Millisecond, seed: rng.Uint64(),
		}
		if t.at+t.lasts > length {
			continue
		}
		order = order[1:]
		until[t.server] = t.at + t.lasts + settle
		script = append(script, t)
	}
	return script
}
