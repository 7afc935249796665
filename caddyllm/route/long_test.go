package route

import (
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prefix"
)

// A prompt of 16 MiB holds up nobody for a millisecond: no call notes, renews or
// forgets more of it than a bound, and after some calls of Settle all is as if one
// had.
func TestALongPromptHoldsUpNobody(t *testing.T) {
	const blocks, most = 1 << 16, prefix.AtOnce
	for _, end := range []End{Completed, Cancelled} {
		d := newDesk(t, 1)
		d.r.Scraped(d.now, d.targets[0].ID, &Load{Waiting: Known(0), Running: Known(0), CapacityTokens: Known(1e7)})
		held := 0
		does := func(what string, do func()) {
			t.Helper()
			do()
			now := d.r.Index().Entries
			if changed := max(now-held, held-now); changed > most {
				t.Errorf("%s changes %d blocks at once, want at most %d", what, changed, most)
			}
			held = now
		}
		settle := func() {
			t.Helper()
			for calls := 0; d.r.Unsettled(); calls++ {
				does("Settle", d.r.Settle)
				if calls > blocks/most+1 {
					t.Fatalf("%d calls of Settle leave something", calls)
				}
			}
		}
		q := prompt("long", blocks)
		var c Choice
		does("Pick", func() { c = d.pick(q) })
		settle()
		if held != blocks {
			t.Errorf("%d blocks are held, want %d", held, blocks)
		}
		if end == Completed {
			does("FirstByte", func() { d.r.FirstByte(d.now, c.Ticket) })
			settle()
		}
		does("Done", func() { d.r.Done(d.now, c.Ticket, end, nil) })
		// Another prompt of that length takes the place in the slab meanwhile.
		other := d.pick(prompt("other", 10))
		settle()
		d.r.Done(d.now, other.Ticket, Cancelled, nil)
		again := d.pick(q)
		if want := map[End]int{Completed: blocks, Cancelled: 0}[end]; again.MatchedBlocks != want {
			t.Errorf("after end %v %d blocks are found, want %d", end, again.MatchedBlocks, want)
		}
	}
}
