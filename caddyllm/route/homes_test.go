package route

import "testing"

// A beginning that is more than one upstream can carry is left to several, the
// same in all gateways, and what is behind it to one of these.
func TestGatewaysAgreeOnWhoSharesAPopularBeginning(t *testing.T) {
	const n = 16
	a, b := crowded(t, n), crowded(t, n)
	for _, d := range []*desk{a, b} {
		for i := range 400 { // every twentieth request is the tenant's
			q := prompt("noise", 1, i, 4)
			if i%20 == 0 {
				q = prompt("tenant", 12, i, 2)
			}
			d.r.Done(d.now, d.pick(q).Ticket, Cancelled, nil)
		}
	}
	homes := func(d *desk, i int) (shares []int, owner int) {
		d.r.Done(d.now, d.pick(prompt("tenant", 12, 1000+i, 2)).Ticket, Cancelled, nil)
		owner = -1
		for i, c := range d.r.candidates {
			if c.shares {
				shares = append(shares, i)
			}
			if c.owned {
				owner = i
			}
		}
		return shares, owner
	}
	owners := map[int]bool{}
	for i := range 20 {
		mine, owner := homes(a, i)
		theirs, other := homes(b, i)
		if len(mine) < 2 || len(mine) > n-2 || len(mine) != len(theirs) || owner != other {
			t.Fatalf("a beginning of a twentieth of requests is left to %v and %v of %d, and its rest to %d and %d", mine, theirs, n, owner, other)
		}
		among := false
		for k := range mine {
			among = among || mine[k] == owner
			if mine[k] != theirs[k] {
				t.Fatalf("gateways leave it to %v and %v", mine, theirs)
			}
		}
		if !among {
			t.Errorf("%d owns the rest, and isn't among %v", owner, mine)
		}
		owners[owner] = true
	}
	if len(owners) < 2 {
		t.Errorf("the rests of 20 prompts all belong to %v", owners)
	}
}

// What answers tell goes to the belief that they are of.
func TestGuessesAreLearnedApart(t *testing.T) {
	p := newPeers()
	for range 500 {
		p.learnGuess(&flight{shares: true, owned: true, prompt: 5000, popular: 4000}, 4000)
		p.learnGuess(&flight{owned: true, prompt: 5000, matched: 1000}, 3000)
	}
	if p.sharing < 0.99 || p.ending > 2*guessMin || p.owning < 0.49 || p.owning > 0.51 {
		t.Errorf("of a popular beginning %.2f is held, behind it %.2f, of others %.2f; want 1, next to nothing, 0.5", p.sharing, p.ending, p.owning)
	}
}
