package route

import (
	"math"
	"testing"
)

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
		p.learnGuess(&flight{shares: true, owned: true, prompt: 5000, popular: 4000}, 4000, 0)
		p.learnGuess(&flight{owned: true, prompt: 5000, matched: 1000}, 3000, 0)
	}
	if p.begun != guessFirst || p.sharing < 0.99 || p.ending > 2*guessMin || p.owning < 0.49 || p.owning > 0.51 {
		t.Errorf("of a popular beginning %.2f is held, behind it %.2f, of others %.2f; want 1, next to nothing, 0.5", p.sharing, p.ending, p.owning)
	}
}

// The tokens of a popular beginning are an estimate: an owner that holds a seventh
// less than that still holds it, and what it doesn't hold behind that teaches.
func TestALittleLessThanWhatIsPopularIsAllOfIt(t *testing.T) {
	p := newPeers()
	for range 300 {
		p.learnGuess(&flight{owned: true, prompt: 3500, matched: 880, popular: 880}, 768, 0)
	}
	if p.ending > 2*guessMin {
		t.Errorf("an owner that never holds more than what is popular is thought to hold %.2f of the rest", p.ending)
	}
	for range 300 { // it lost all of it: that tells nothing of who sends where
		p.learnGuess(&flight{owned: true, prompt: 3500, matched: 880, popular: 880}, 0, 0)
	}
	if p.owning != guessFirst {
		t.Errorf("of other prompts %.2f is thought to be held, want what it was", p.owning)
	}
}

// What an owner holds of a session that is known here, such as the last answer,
// doesn't tell what it holds of one that isn't.
func TestASessionUnderWayTellsNothingOfNewOnes(t *testing.T) {
	p := newPeers()
	for range 300 {
		p.learnGuess(&flight{owned: true, begun: true, prompt: 3500, matched: 2000, popular: 880}, 3400, 0)
	}
	if p.begun < 0.9 || p.ending != guessFirst || p.owning != guessFirst {
		t.Errorf("of sessions under way %.2f is held, of others %.2f and %.2f; want nearly 1 and what it was", p.begun, p.ending, p.owning)
	}
}

// Blocks that share a place in the table of counts look popular. A prompt has the
// same owner in a gateway where one in its middle does.
func TestACollisionMovesNoOwner(t *testing.T) {
	const n = 8
	a, b := crowded(t, n), crowded(t, n)
	for i := range 50 {
		q := prompt(1000+i, 40)
		half := (len(q.Chain) - 1) / 2
		*b.r.popular.place(q.Chain[half]) += 100 * came
		of := func(d *desk) (owner int) {
			owner = -1
			d.r.Done(d.now, d.pick(q).Ticket, Cancelled, nil)
			for i, c := range d.r.candidates {
				if c.shares {
					t.Errorf("prompt %d, which nobody else has sent, begins with what is popular", i)
				}
				if c.owned {
					owner = i
				}
			}
			return owner
		}
		if x, y := of(a), of(b); x != y || x < 0 {
			t.Errorf("prompt %d belongs to %d, and to %d where a block of it looks popular", i, x, y)
		}
	}
}

// A prompt that nobody here has seen goes to its owner though that costs a little
// more: a gateway that gets it next looks there. One that is under way, or the
// prompts of gateways that find nothing at owners, needn't.
func TestANewPromptIsLeftWherePeersLookForIt(t *testing.T) {
	d := crowded(t, 4)
	stalls := func(q *Request) (owner, others float64) {
		terms := d.r.Explain(d.now, q, d.targets)
		others = math.Inf(1)
		for i, c := range d.r.candidates {
			if c.owned {
				owner = terms[i].Stall
			} else {
				others = min(others, terms[i].Stall)
			}
		}
		return owner, others
	}
	q := prompt("new", 1, 2, 40)
	prefill := float64(q.Bytes) / 4 / d.r.rates.best
	if owner, others := stalls(q); others-owner < prefill/4 {
		t.Errorf("it takes others %.3f s at its owner and %.3f elsewhere, of %.3f to prefill it", owner, others, prefill)
	}
	d.serve(q)
	if owner, others := stalls(q); others-owner > prefill/4 {
		t.Errorf("where it is known it takes others %.3f s at its owner and %.3f elsewhere", owner, others)
	}
	d.r.peers.ending, d.r.peers.owning = guessMin, guessMin
	if owner, others := stalls(prompt("newer", 1, 2, 40)); others-owner > prefill/4 {
		t.Errorf("where owners hold nothing it takes others %.3f s there and %.3f elsewhere", owner, others)
	}
}
