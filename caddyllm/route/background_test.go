package route

import (
	"testing"
	"time"
)

// A response in the background is accepted within milliseconds, and that was taken
// for how long an answer takes.
func TestAResponseInTheBackgroundTeachesNoResidence(t *testing.T) {
	d := newDesk(t, 2)
	q := prompt("report", 40)
	q.Background, q.Stream = true, false
	before := d.r.answers
	c := d.pick(q)
	d.now = d.now.Add(3 * time.Millisecond)
	d.r.Done(d.now, c.Ticket, Completed, nil)
	if d.r.answers != before {
		t.Errorf("an answer that only accepts was learned: %+v, before %+v", d.r.answers, before)
	}
	d.idle()
	if got := d.serve(prompt("report", 40, "question", 2)); got.Index != c.Index || got.MatchedBlocks != 40 {
		t.Errorf("%d blocks of it are held at %d, want 40 at %d", got.MatchedBlocks, got.Index, c.Index)
	}

	// An engine that knows no background answers whole, with its tokens.
	other := prompt("other", 40)
	other.Background, other.Stream = true, false
	before = d.r.answers
	c = d.pick(other)
	d.now = d.now.Add(2 * time.Second)
	d.r.Done(d.now, c.Ticket, Completed, &Usage{PromptTokens: 2000})
	if d.r.answers == before {
		t.Error("a whole answer taught nothing")
	}
	d.idle()
}
