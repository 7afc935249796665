package route

import (
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prefix"
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

// Where many run, no call touches the blocks of all.
func TestThoseWhoRunAreTouchedInTurn(t *testing.T) {
	d := newDesk(t, 1)
	const capacity = 20_000 // blocks
	d.r.Scraped(d.now, d.targets[0].ID, &Load{Waiting: Known(0), Running: Known(0), CapacityTokens: Known(capacity * 64)})
	u := func() *upstream { return d.r.upstreams[0] }
	does := func(what string, own int, do func()) {
		t.Helper()
		before := u().puts
		do()
		if touched := int(u().puts-before) - own; touched > prefix.AtOnce {
			t.Errorf("%s touches %d blocks of others, want at most %d", what, touched, prefix.AtOnce)
		}
	}
	for c := range 30 {
		d.r.FirstByte(d.now, d.pick(prompt("running", 1, c, 299)).Ticket)
	}
	settled := 0
	for c := range 40 {
		next := d.pick(prompt("next", 1, c, 499))
		does("FirstByte", 0, func() { d.r.FirstByte(d.now, next.Ticket) })
		for ; d.r.Unsettled(); settled++ {
			does("Settle", 0, d.r.Settle)
			if settled > 1000 {
				t.Fatal("there is always something left")
			}
		}
		d.r.Done(d.now, next.Ticket, Completed, nil)
	}
	if settled == 0 {
		t.Error("all are touched at once")
	}
	for c := range 30 {
		if n := d.r.Explain(d.now, prompt("running", 1, c, 299), d.targets)[0].MatchedBlocks; n != 300 {
			t.Errorf("%d of the 300 blocks of running request %d are there", n, c)
		}
	}
}

// More run than half the cache holds: each is touched once, and not again and
// again since the others are.
func TestThoseWhoRunFillTheCache(t *testing.T) {
	d := newDesk(t, 1)
	const capacity = 4000 // blocks
	d.r.Scraped(d.now, d.targets[0].ID, &Load{Waiting: Known(0), Running: Known(0), CapacityTokens: Known(capacity * 64)})
	for c := range 40 {
		d.r.FirstByte(d.now, d.pick(prompt("running", 1, c, 999)).Ticket)
		for calls := 0; d.r.Unsettled(); calls++ {
			if d.r.Settle(); calls > 200 {
				t.Fatalf("with %d that run, %d calls of Settle leave something", c+1, calls)
			}
		}
	}
}
