package route

import (
	"testing"
)

// The cache model is an LRU of the capacity that the page tells.
func TestCapacityFromThePage(t *testing.T) {
	d := newDesk(t, 1)
	d.r.Scraped(d.now, d.targets[0].ID, &Load{Running: Known(0), CapacityTokens: Known(6400)}) // 100 blocks of 64 tokens
	for i := range 30 {
		d.serve(prompt(i, 10))
	}
	u := d.r.Snapshot(d.now)[0]
	if u.Entries != u.Capacity || u.Capacity != 100 {
		t.Errorf("%d blocks of %d are held, want 100 of 100", u.Entries, u.Capacity)
	}
	if got := d.serve(prompt(29, 10)); got.MatchedBlocks != 10 {
		t.Errorf("the last prompt matches %d blocks, want 10", got.MatchedBlocks)
	}
	if got := d.serve(prompt(3, 10)); got.MatchedBlocks != 0 {
		t.Errorf("an evicted prompt matches %d blocks, want 0", got.MatchedBlocks)
	}
}

// Tokens per byte and the truth about the cache come from answers.
func TestAnswersTeach(t *testing.T) {
	d := newDesk(t, 1)
	for i := range 300 {
		c := d.pick(prompt(i, 10))
		d.r.Done(d.now, c.Ticket, Completed, &Usage{PromptTokens: 1280, CompletionTokens: 10, CachedKnown: true})
	}
	if got := d.pick(prompt("x", 10)).PromptTokens; got < 1150 || got > 1280 {
		t.Errorf("a prompt of 2,560 bytes is %d tokens after 300 of 1,280, want about that", got)
	}
	// Hits that were promised and missed shrink the believed capacity.
	d = newDesk(t, 1)
	d.r.Scraped(d.now, d.targets[0].ID, &Load{Running: Known(0), CapacityTokens: Known(64_000)})
	before := d.r.Snapshot(d.now)[0].Capacity
	for range 3 * auditRequests {
		c := d.pick(prompt("same", 10))
		d.r.Done(d.now, c.Ticket, Completed, &Usage{PromptTokens: 640, CachedKnown: true})
	}
	if got := d.r.Snapshot(d.now)[0].Capacity; got >= before || got < before/3 {
		t.Errorf("capacity went from %d to %d blocks though nothing was ever cached", before, got)
	}
}

// vLLM 0.19 with --enable-prompt-tokens-details leaves the details of a prompt
// out of which nothing was cached: only from an engine that never told is that
// no answer.
func TestSilenceOfAnEngineThatToldIsAMiss(t *testing.T) {
	for _, told := range []bool{false, true} {
		d := newDesk(t, 1)
		d.r.Scraped(d.now, d.targets[0].ID, &Load{Running: Known(0), CapacityTokens: Known(64_000)})
		before := d.r.Snapshot(d.now)[0].Capacity
		for i := range 3 * auditRequests {
			c := d.pick(prompt("same", 10))
			// Now and then a block is cached after all.
			usage := &Usage{PromptTokens: 640, CachedKnown: told && i%10 == 0}
			if usage.CachedKnown {
				usage.CachedTokens = 64
			}
			d.r.Done(d.now, c.Ticket, Completed, usage)
		}
		if got := d.r.Snapshot(d.now)[0].Capacity; (got < before) != told {
			t.Errorf("told %t: capacity went from %d to %d blocks", told, before, got)
		}
	}
}

// One answer of an API that tells doesn't make chats misses that tell nothing,
// and an engine that no longer tells is believed so after some of them.
func TestSilenceCountsOnlyWhereAnEngineTold(t *testing.T) {
	known := Usage{PromptTokens: 640, CachedTokens: 600, CachedKnown: true, Form: FormResponse}
	for name, c := range map[string]struct {
		told    Usage
		restart bool
	}{
		"another form": {told: known},
		"a restart":    {told: Usage{PromptTokens: 640, CachedTokens: 600, CachedKnown: true}, restart: true},
	} {
		d := newDesk(t, 1)
		page := &Load{Running: Known(0), CapacityTokens: Known(64_000), StartTime: Known(100)}
		d.r.Scraped(d.now, d.targets[0].ID, page)
		before := d.r.Snapshot(d.now)[0].Capacity
		told := c.told
		d.r.Done(d.now, d.pick(prompt("same", 10)).Ticket, Completed, &told)
		if c.restart {
			page.StartTime = Known(500)
			d.r.Scraped(d.now, d.targets[0].ID, page)
		}
		for range 3 * auditRequests {
			d.r.Done(d.now, d.pick(prompt("same", 10)).Ticket, Completed, &Usage{PromptTokens: 640})
		}
		if got := d.r.Snapshot(d.now)[0].Capacity; got != before {
			t.Errorf("%s: capacity went from %d to %d blocks", name, before, got)
		}
	}
	// A flag that went away without a sign costs one correction at most.
	d := newDesk(t, 1)
	d.r.Scraped(d.now, d.targets[0].ID, &Load{Running: Known(0), CapacityTokens: Known(64_000)})
	before := d.r.Snapshot(d.now)[0].Capacity
	for i := range 6 * auditRequests {
		usage := Usage{PromptTokens: 640, CachedTokens: 600, CachedKnown: i < auditRequests-silences}
		d.r.Done(d.now, d.pick(prompt("same", 10)).Ticket, Completed, &usage)
	}
	if got := d.r.Snapshot(d.now)[0].Capacity; got < before*3/4 {
		t.Errorf("capacity went from %d to %d blocks", before, got)
	}
}

// The second of two answers to a cold prompt finds the first one's blocks, and
// that is no hit that was missed here.
func TestCachedTokensOfSeveralAnswersTeachNothing(t *testing.T) {
	d := newDesk(t, 1)
	d.r.Scraped(d.now, d.targets[0].ID, &Load{Running: Known(0), CapacityTokens: Known(20_000)})
	before := d.r.Snapshot(d.now)[0].Capacity
	for i := range 4 * auditRequests {
		q := prompt(i, 20)
		q.Sequences = 2
		d.r.Done(d.now, d.pick(q).Ticket, Completed, &Usage{PromptTokens: 1280, CachedTokens: 1264, CachedKnown: true})
	}
	if got := d.r.Snapshot(d.now)[0].Capacity; got != before {
		t.Errorf("capacity went from %d to %d blocks", before, got)
	}
}
