package route

import (
	"testing"
	"time"
)

// What a running request holds can't be evicted. A context of 98,000 tokens that
// was being answered was thought to have given way to what came meanwhile, and
// was prefilled anew elsewhere.
func TestWhatARunningRequestHoldsStays(t *testing.T) {
	d := newDesk(t, 1)
	const capacity = 1000 // blocks
	d.r.Scraped(d.now, d.targets[0].ID, &Load{Waiting: Known(0), Running: Known(0), CapacityTokens: Known(capacity * 64)})
	long := d.pick(prompt("long", 200))
	d.r.FirstByte(d.now, long.Ticket)
	held := func() int {
		return d.r.Explain(d.now, prompt("long", 200, "more", 1), d.targets)[0].MatchedBlocks
	}
	for c := range 100 { // five times the capacity
		d.now = d.now.Add(100 * time.Millisecond)
		d.serve(prompt(c, 50))
		if held() != 200 {
			t.Fatalf("after %d requests %d of the 200 blocks are there that a running one holds", c+1, held())
		}
	}
	if n := len(d.r.upstreams[0].kept); n > 2*capacity {
		t.Errorf("%d requests are remembered for it", n)
	}
	d.r.Done(d.now, long.Ticket, Completed, nil)
	for c := range 100 {
		d.now = d.now.Add(100 * time.Millisecond)
		d.serve(prompt(1000+c, 50))
	}
	if held() != 0 {
		t.Errorf("%d blocks of a request that has ended outlive five times the capacity", held())
	}
}

// A cache that is emptied while requests run stays empty: after a restart they are
// lost too.
func TestNothingIsKeptOfAnEngineThatIsGone(t *testing.T) {
	d := newDesk(t, 1)
	d.r.Scraped(d.now, d.targets[0].ID, &Load{Waiting: Known(0), Running: Known(0), CapacityTokens: Known(64_000), StartTime: Known(1)})
	long := d.pick(prompt("long", 200))
	d.r.FirstByte(d.now, long.Ticket)
	d.r.Scraped(d.now, d.targets[0].ID, &Load{Waiting: Known(0), Running: Known(0), CapacityTokens: Known(64_000), StartTime: Known(9)})
	for c := range 40 {
		d.now = d.now.Add(100 * time.Millisecond)
		d.serve(prompt(c, 50))
	}
	if n := d.r.Explain(d.now, prompt("long", 200, "more", 1), d.targets)[0].MatchedBlocks; n != 0 {
		t.Errorf("%d blocks are there that were lost with the engine", n)
	}
}
