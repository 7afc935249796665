package route

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// What Foresee says is what Pick then does, with terms that add up to the cost
// that was compared, whatever happened before.
func TestForeseeIsWhatPickDoes(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 11))
		d := newDesk(t, 2+rng.IntN(6))
		var open []Choice
		for range 200 {
			d.now = d.now.Add(time.Duration(rng.IntN(300)) * time.Millisecond)
			switch rng.IntN(5) {
			case 0:
				d.scrape(rng.IntN(len(d.targets)), float64(rng.IntN(5)), float64(rng.IntN(20)))
			case 1:
				if len(open) > 0 {
					d.r.FirstByte(d.now, open[rng.IntN(len(open))].Ticket)
				}
			case 2:
				if len(open) > 0 {
					d.r.Done(d.now, open[rng.IntN(len(open))].Ticket, End(rng.IntN(4)), nil)
				}
			default:
				q := prompt(rng.IntN(6), rng.IntN(20), rng.IntN(20), rng.IntN(8))
				q.Bytes += rng.IntN(200)
				for i := range d.targets {
					d.targets[i].Tried = rng.IntN(8) == 0
					d.targets[i].Home = rng.IntN(8) == 0
				}
				saw, ok := d.r.Foresee(d.now, q, d.targets)
				if !ok {
					t.Fatalf("seed %d: Foresee says that there are no targets", seed)
				}
				checkForesight(t, seed, &saw)
				c := d.pick(q)
				if len(q.Chain) > 0 && (saw.Index != c.Index || saw.Reason != c.Reason) || saw.MatchedTokens != saw.Terms[saw.Index].MatchedTokens {
					t.Fatalf("seed %d: Foresee says %d for %s, Pick %d for %s", seed, saw.Index, saw.Reason, c.Index, c.Reason)
				}
				open = append(open, c)
			}
		}
	}
}

func checkForesight(t *testing.T, seed uint64, f *Foresight) {
	t.Helper()
	chosen := &f.Terms[f.Index]
	for i := range f.Terms {
		term := &f.Terms[i]
		sum := term.Queue + term.Prefill + term.Stall - term.Copy + term.Memory + term.Step
		if math.Abs(sum-term.Cost) > 1e-9*max(1, term.Cost) {
			t.Fatalf("seed %d: the terms of %s add up to %v, its cost is %v", seed, term.ID, sum, term.Cost)
		}
		same := term.Tried == chosen.Tried && term.Last == chosen.Last
		if same && term.Cost*(1+tieBand) < chosen.Cost && !f.Homing {
			t.Fatalf("seed %d: %s is chosen for %v s though %s costs %v s", seed, chosen.ID, chosen.Cost, term.ID, term.Cost)
		}
		if same && term.Cost < chosen.Cost && !f.Homing && !f.Tie {
			t.Fatalf("seed %d: %s costs less than the choice, and neither a tie nor a session is the reason", seed, term.ID)
		}
	}
}

func TestForeseeLeavesNothingBehind(t *testing.T) {
	d := newDesk(t, 4)
	for c := range 30 {
		d.serve(prompt(c, 10))
	}
	d.scrape(0, 2, 3)
	state := func() []any {
		counts := append([]tally(nil), d.r.popular.counts...)
		return []any{d.r.Snapshot(d.now), counts, d.r.rng, len(d.r.flights), len(d.r.unused), d.r.index.Len(), len(d.r.slots)}
	}
	before := state()
	unknown := append([]Target{{ID: "U9:8000"}}, d.targets...)
	for i := range 50 {
		d.r.Foresee(d.now, prompt(i, 12, "new", 3), unknown)
		d.r.Foresee(d.now, &Request{Bytes: 100}, d.targets)
	}
	if after := state(); !reflect.DeepEqual(before, after) {
		t.Errorf("50 foresights changed the router:\n%+v\nbefore:\n%+v", after, before)
	}
	if _, ok := d.r.Foresee(d.now, prompt("x", 1), nil); ok {
		t.Error("Foresee chose among no targets")
	}
}

func TestForgetEmptiesOneCache(t *testing.T) {
	d := newDesk(t, 2)
	first := d.serve(prompt("x", 7))
	if blocks, ok := d.r.Forget(d.targets[first.Index].ID); !ok || blocks != 7 {
		t.Errorf("Forget = %d, %v, want 7 blocks", blocks, ok)
	}
	if c := d.pick(prompt("x", 7)); c.Reason != ReasonCold {
		t.Errorf("after Forget the prompt goes on for %s, want cold", c.Reason)
	}
	if _, ok := d.r.Forget("nobody:1"); ok {
		t.Error("Forget knows an upstream that nobody offered")
	}
}

// Of no targets there is nothing to tell.
func TestExplainOfNoTargets(t *testing.T) {
	d := newDesk(t, 1)
	if terms := d.r.Explain(d.now, prompt("any", 3), nil); len(terms) != 0 {
		t.Errorf("%d targets are explained, of none", len(terms))
	}
	if _, ok := d.r.Foresee(d.now, prompt("any", 3), nil); ok {
		t.Error("a choice among none is foreseen")
	}
}
