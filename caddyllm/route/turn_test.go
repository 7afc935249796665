package route

import (
	"testing"
	"time"
)

// stepping is a desk with one engine, on which a stream tells of steps of 40 ms,
// and whose first tokens come together.
func stepping(t *testing.T) (*desk, *Pulse) {
	t.Helper()
	d := newDesk(t, 1)
	d.r.apart = apart{should: apartPrior, did: apartPrior}
	c := d.pick(prompt("stream", 4))
	d.r.FirstByte(d.now, c.Ticket)
	for range 100 {
		d.now = d.now.Add(40 * time.Millisecond)
		c.Pulse.Beat(d.now, 40*time.Millisecond)
	}
	return d, c.Pulse
}

// Prompts that wait for the same step pay for it once, and their tokens each.
func TestPromptsThatJoinAStepPayForItOnce(t *testing.T) {
	d, _ := stepping(t)
	q := prompt("another", 8)
	alone := d.r.Explain(d.now, q, d.targets)[0]
	for i := range 5 {
		d.pick(prompt(i, 8))
	}
	among := d.r.Explain(d.now, q, d.targets)[0]
	rate := d.r.Snapshot(d.now)[0].Rate
	if tokens := 5 * 8 * 64 / rate; !near(among.First-alone.First, tokens) {
		t.Errorf("behind five prompts the first token comes %.3f s later, want the %.3f s of their tokens", among.First-alone.First, tokens)
	}
	// Each of them waits for our tokens as we for theirs, and as for others' elsewhere.
	if tokens := joinedDelay * 5 * (8*64 + attention*512*256) / rate; !near(among.Stall-alone.Stall, tokens) {
		t.Errorf("it takes %.3f s from those that join, want %.3f", among.Stall-alone.Stall, tokens)
	}
}

// What came before a step began is in it, and its work is being done; what came
// since waits for the next.
func TestAStepTakesWhatWasThereWhenItBegan(t *testing.T) {
	d, pulse := stepping(t)
	d.pick(prompt("first", 40))
	d.now = d.now.Add(40 * time.Millisecond)
	pulse.Beat(d.now, 40*time.Millisecond)
	d.now = d.now.Add(time.Millisecond)
	d.pick(prompt("second", 40))
	u := d.r.upstreams[0]
	d.r.Snapshot(d.now)
	if u.begun != 1 || len(u.queue) != 2 {
		t.Errorf("%d of %d have begun, want the first of two", u.begun, len(u.queue))
	}
	early := d.r.Explain(d.now, prompt("third", 4), d.targets)[0].Queue
	d.now = d.now.Add(100 * time.Millisecond)
	late := d.r.Explain(d.now, prompt("third", 4), d.targets)[0].Queue
	if !near(early-late, 0.1) {
		t.Errorf("in 0.1 s the queue goes from %.3f to %.3f s", early, late)
	}
}

// First tokens that come one by one, of an engine with few slots, are heard, and
// so are those that come together again.
func TestFewSlotsAreHeard(t *testing.T) {
	d := newDesk(t, 1)
	if got := d.r.apart.share(); got != 1 {
		t.Errorf("before anything was seen %.2f come one by one, want all", got)
	}
	batch := func(gap time.Duration) {
		var all []Choice
		for i := range 4 {
			all = append(all, d.pick(prompt("batch", 1, d.now, 1, i, 2)))
		}
		d.now = d.now.Add(200 * time.Millisecond)
		d.r.FirstByte(d.now, all[0].Ticket)
		d.now = d.now.Add(300 * time.Millisecond)
		for _, c := range all[1:] {
			d.r.FirstByte(d.now, c.Ticket)
			d.now = d.now.Add(gap)
		}
		for _, c := range all {
			d.r.Done(d.now, c.Ticket, Completed, nil)
		}
	}
	for range 50 {
		batch(0)
	}
	if got := d.r.apart.share(); got > 0.05 {
		t.Errorf("%.2f seem to come one by one, though all come together", got)
	}
	for range 100 {
		batch(250 * time.Millisecond)
	}
	if got := d.r.apart.share(); got < 0.9 {
		t.Errorf("%.2f seem to come one by one, though all do", got)
	}
}

// A long prompt that is cached takes no work, but room that its blocks must not
// be evicted from: where there is none it waits, and all behind it.
func TestACachedPromptTakesRoom(t *testing.T) {
	d := newDesk(t, 1)
	d.r.Scraped(d.now, d.targets[0].ID, &Load{Waiting: Known(0), Running: Known(0), CapacityTokens: Known(100_000), KVUsage: Known(0)})
	for i := range 2 {
		d.serve(prompt(i, 700)) // 44,800 tokens each
	}
	if got := d.r.Explain(d.now, prompt("small", 2), d.targets)[0].Memory; got != 0 {
		t.Errorf("an idle engine has no room for %v s", got)
	}
	for i := range 2 {
		if c := d.pick(prompt(i, 704)); c.MatchedBlocks != 700 {
			t.Fatalf("%d blocks match, want 700", c.MatchedBlocks)
		}
	}
	if got := d.r.Explain(d.now, prompt("large", 200), d.targets)[0].Memory; got <= 0 {
		t.Error("behind two cached prompts that fill the engine there is room for a third")
	}
}
