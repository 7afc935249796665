package route

import (
	"testing"
	"time"
)

// scored is a prompt all of whose tokens are to be scored.
func scored(stretches ...any) *Request {
	q := prompt(stretches...)
	q.Unread = true
	return q
}

// compute has a request answered by an engine that computes all of the prompt at
// 10,000 tokens a second, and tells so.
func (d *desk) compute(q *Request) Choice {
	d.t.Helper()
	c := d.pick(q)
	d.now = d.now.Add(time.Duration(float64(requestWork+c.PromptTokens) / 1e4 * float64(time.Second)))
	d.r.FirstByte(d.now, c.Ticket)
	d.now = d.now.Add(100 * time.Millisecond)
	d.r.Done(d.now, c.Ticket, Completed, &Usage{PromptTokens: c.PromptTokens, CachedKnown: true})
	return c
}

// Prompts whose log probabilities are asked for were sent to who holds their
// beginning, which their engine doesn't look for: all to one of two idle upstreams,
// whose cache then seemed to be a third of what it is, and whose speed too.
func TestPromptsThatAreScoredGoWhereLoadIsLeastAndTeachNothingOfCaches(t *testing.T) {
	d := newDesk(t, 2)
	for i := range 2 {
		d.r.Scraped(d.now, d.targets[i].ID, &Load{Running: Known(0), Waiting: Known(0), CapacityTokens: Known(64_000)})
	}
	d.serve(prompt("examples", 40))
	counts := make([]int, 2)
	for i := range 600 {
		c := d.compute(scored("examples", 40, i, 2))
		if counts[c.Index]++; c.MatchedTokens != 0 {
			t.Fatalf("%d tokens are predicted to be cached, which the engine doesn't look for", c.MatchedTokens)
		}
	}
	if min(counts[0], counts[1]) < 200 {
		t.Errorf("idle upstreams get %v of 600, want about as many", counts)
	}
	d.now = d.now.Add(2 * ratesFor)
	d.pick(prompt("any", 1))
	for i, u := range d.r.upstreams {
		if u.factor != 1 {
			t.Errorf("%d's cache is believed to be %.2f of what it tells", i, u.factor)
		}
		if u.rate < 8000 || u.rate > 12_000 {
			t.Errorf("%d is thought to prefill %.0f tokens/s, and does 10,000", i, u.rate)
		}
	}
	// A load on one sends them to the other, whoever holds them.
	d = newDesk(t, 2)
	home := d.serve(prompt("examples", 40)).Index
	d.pickAt(home, prompt("other", 20))
	if c := d.pick(scored("examples", 40)); c.Index == home || c.Reason != ReasonCold {
		t.Errorf("a scored prompt goes to the busy holder %d by %q", c.Index, c.Reason)
	}
}

// What a scored prompt computes is cached like any other's; and where it fails,
// what others left there is.
func TestAPromptThatIsScoredIsLeftInTheCache(t *testing.T) {
	d := newDesk(t, 2)
	home := d.compute(scored("examples", 40)).Index
	if c := d.pick(prompt("examples", 40, "question", 2)); c.Index != home || c.MatchedBlocks != 40 {
		t.Errorf("%d of 40 blocks are found at %d, want all at %d", c.MatchedBlocks, c.Index, home)
	}
	for _, end := range []End{Failed, Cancelled, Rejected} {
		d := newDesk(t, 1)
		d.serve(prompt("examples", 40))
		d.r.Done(d.now, d.pick(scored("examples", 40, "more", 5)).Ticket, end, nil)
		d.now = d.now.Add(time.Minute)
		if c := d.serve(prompt("examples", 40, "more", 5)); c.MatchedBlocks != 40 {
			t.Errorf("after a scored prompt that ended by %d, %d blocks are found, want 40", end, c.MatchedBlocks)
		}
	}
	d.r.Done(d.now, d.pick(scored("first of all", 4)).Ticket, Cancelled, nil)
	d = newDesk(t, 2) // not even counted
	d.r.Done(d.now, d.pick(scored("first of all", 4)).Ticket, Cancelled, nil)
	d.idle()
}

// An answer that goes on from an earlier one finds that in the cache, of which the
// request shows nothing: no hit was forgotten too early.
func TestAnAnswerThatGoesOnTeachesNothingOfTheCache(t *testing.T) {
	d := newDesk(t, 1)
	d.r.Scraped(d.now, d.targets[0].ID, &Load{Running: Known(0), CapacityTokens: Known(20_000)})
	for i := range 40 {
		d.serve(prompt(i, 20)) // it is full
	}
	for range 4 * auditRequests {
		c := d.pick(&Request{Bytes: 1000, Partial: true, Stream: true})
		d.r.Done(d.now, c.Ticket, Completed, &Usage{PromptTokens: 5000, CachedTokens: 4750, CachedKnown: true})
	}
	if got := d.r.upstreams[0].factor; got != 1 {
		t.Errorf("the cache is believed to be %.2f of what its page tells", got)
	}
}
