package route

import (
	"fmt"
	"testing"
)

// at sends a session's request whose earlier ones went to the i-th target.
func (d *desk) at(i int, q *Request) Choice {
	d.t.Helper()
	for k := range d.targets {
		d.targets[k].Home = k == i
	}
	c := d.pick(q)
	d.targets[i].Home = false
	return c
}

// A client whose prompts never repeat says by a header that they are of one
// session: what its upstream has of it shows in no prompt.
func TestASessionStaysWhereItWas(t *testing.T) {
	d := newDesk(t, 4)
	for turn := range 20 {
		c := d.at(2, prompt(fmt.Sprint("turn", turn), 40))
		if c.Index != 2 || c.Reason != ReasonSession {
			t.Fatalf("turn %d goes to %d for %q, want home, 2", turn, c.Index, c.Reason)
		}
		d.r.Done(d.now, c.Ticket, Completed, nil)
	}
}

// Another one that holds the prompt's start draws no session away from home.
func TestASessionIsWorthMoreThanAPrefix(t *testing.T) {
	d := newDesk(t, 2)
	shared := d.serveAt(0, prompt("shared", 40))
	c := d.at(1, prompt("shared", 40))
	if c.Index != 1 || c.Reason != ReasonSession || shared.Index != 0 {
		t.Errorf("the session goes to %d for %q, want home, 1", c.Index, c.Reason)
	}
	if c := d.pick(prompt("shared", 40)); c.Index != 0 || c.Reason != ReasonPrefix {
		t.Errorf("without a home the prompt goes to %d for %q, want 0 for its prefix", c.Index, c.Reason)
	}
}

// A session leaves its home for a queue that is shorter by more than the
// prompt's own work, and not for one that is shorter by less.
func TestASessionLeavesALongQueue(t *testing.T) {
	const blocks = 40
	d := newDesk(t, 2)
	own := func(c Choice) float64 { return requestWork + float64(c.PromptTokens-c.MatchedTokens) }
	d.only(1, func() Choice { return d.pick(prompt("a little", 1)) })
	c := d.at(1, prompt("first", blocks))
	if c.Index != 1 {
		t.Fatalf("a session with a short queue at home goes to %d, want 1", c.Index)
	}
	work := own(c)
	d.r.Done(d.now, c.Ticket, Cancelled, nil)
	for queued := 0.0; queued < 3*work; {
		queued += own(d.only(1, func() Choice { return d.pick(prompt(fmt.Sprint("others", queued), blocks)) }))
	}
	if c := d.at(1, prompt("second", blocks)); c.Index != 0 || c.Reason != ReasonCold {
		t.Errorf("a session with a long queue at home goes to %d for %q, want 0", c.Index, c.Reason)
	}
}

// Home is no excuse: what failed this request, or is suspect, comes last.
func TestASessionLeavesAHomeThatFails(t *testing.T) {
	d := newDesk(t, 2)
	d.targets[1].Tried = true
	if c := d.at(1, prompt("retry", 10)); c.Index != 0 || c.Reason != ReasonRetry {
		t.Errorf("a retry goes to %d for %q, want 0", c.Index, c.Reason)
	}
	d.targets[1].Tried = false
	c := d.at(1, prompt("fails", 10))
	d.r.Done(d.now, c.Ticket, Failed, nil)
	if c := d.at(1, prompt("after", 10)); c.Index != 0 {
		t.Errorf("a session goes to %d for %q, though that failed just now", c.Index, c.Reason)
	}
}

// That peers may have left a prompt at its owner draws no session away from home.
func TestPeersDrawNoSessionFromHome(t *testing.T) {
	for _, found := range []float64{guessMin, 0.5, 0.9, 1} {
		d := crowded(t, 4)
		d.r.peers.owning, d.r.peers.ending = found, found
		for turn := range 40 {
			c := d.at(2, prompt(fmt.Sprint("turn", turn), 60))
			if c.Index != 2 {
				t.Errorf("turn %d leaves an idle home for %d, where owners have %.2f", turn, c.Index, found)
			}
			d.r.Done(d.now, c.Ticket, Cancelled, nil)
		}
	}
}
