package route

import (
	"testing"
	"time"
)

// A response in the background was over for the decision when it was accepted: what
// the engine then worked on was taken for another gateway's, and an answer was taken
// to be there in milliseconds.
func TestAResponseInTheBackgroundIsWorkedOnAfterItsAnswer(t *testing.T) {
	d := newDesk(t, 2)
	accepted := func() Choice {
		q := prompt("report", 40)
		q.Background, q.Stream = true, false
		c := d.pick(q)
		d.now = d.now.Add(3 * time.Millisecond)
		d.r.Done(d.now, c.Ticket, Completed, nil)
		d.r.Done(d.now, c.Ticket, Completed, nil) // and once more
		return c
	}
	before := d.r.answers
	c := accepted()
	if d.r.answers != before {
		t.Errorf("an answer that only accepts was learned: %+v, before %+v", d.r.answers, before)
	}
	u := d.r.upstreams[c.Index]
	if u.inFlight() != 1 || u.queued == 0 {
		t.Fatalf("%d in flight and %.0f of work after the request was accepted, want it to be worked on", u.inFlight(), u.queued)
	}
	for range 3 { // its engine shows it, and nobody else's
		d.now = d.now.Add(time.Second)
		d.scrape(c.Index, 0, 1)
		d.scrape(1-c.Index, 0, 0)
	}
	if u.brought != (others{}) || u.inFlight() != 1 {
		t.Errorf("%+v is taken to be others', with %d of our own", u.brought, u.inFlight())
	}
	if got := d.serve(prompt("report", 40, "question", 2)); got.Index != c.Index || got.MatchedBlocks != 40 {
		t.Errorf("%d blocks of it are held at %d, want 40 at %d", got.MatchedBlocks, got.Index, c.Index)
	}
	d.now = d.now.Add(time.Duration(before.residence * float64(time.Second)))
	d.scrape(c.Index, 0, 0)
	d.idle()
	// An engine that knows no background answers whole, with its tokens.
	q := prompt("other", 40)
	q.Background, q.Stream = true, false
	d.r.Done(d.now.Add(2*time.Second), d.pick(q).Ticket, Completed, &Usage{PromptTokens: 2000})
	d.idle()
	// They are bounded.
	for range maxLate + 10 {
		accepted()
		d.now = d.now.Add(-3 * time.Millisecond)
	}
	if n := d.r.upstreams[0].inFlight() + d.r.upstreams[1].inFlight(); n != maxLate || len(d.r.late) != maxLate {
		t.Errorf("%d are in flight and %d kept, want %d", n, len(d.r.late), maxLate)
	}
	d.now = d.now.Add(time.Hour)
	d.pick(prompt("any", 1))
	if n := len(d.r.late); n != 0 {
		t.Errorf("%d are kept after an hour", n)
	}
}
