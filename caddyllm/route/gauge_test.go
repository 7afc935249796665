package route

import (
	"fmt"
	"testing"
	"time"
)

// An engine of 100,000 tokens whose page tells another number is believed as far
// as its gauge and what it runs for us show more, never less.
func TestAnEngineThatTellsLessRoomThanItHas(t *testing.T) {
	const room, running = 100_000, 20
	for _, c := range []struct {
		name       string
		told       float64
		foreign    float64 // tokens of others in it
		still      bool    // the page doesn't move
		min, max   float64 // what is believed, tokens
		memoryWait bool    // for another prompt of 20,000 tokens
	}{
		{"told right", room, 0, false, room, room, false},
		{"told a little less", 80_000, 0, false, 80_000, 80_000, false},
		{"told half", room / 2, 0, false, 90_000, 110_000, false},
		{"told a quarter", room / 4, 0, false, 90_000, 110_000, false},
		{"told a hundredth", room / 100, 0, false, 8_000, 8_000, true},
		{"told double", 2 * room, 0, false, 2 * room, 2 * room, false},
		{"told half, half of it filled by others", room / 2, 40_000, false, room / 2, room / 2, true},
		{"told half, by a page that stands still", room / 2, 0, true, room / 2, room / 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, 1)
			u := d.r.upstream(d.r.clock.at(d.now), d.targets[0].ID)
			for i := range running { // of 2,000 tokens each
				d.r.FirstByte(d.now, d.pick(prompt(i, 2_000/64)).Ticket)
			}
			used := (running*2_000 + c.foreign) / room
			for i := range 5 {
				d.now = d.now.Add(time.Second)
				page := Load{Waiting: Known(0), Running: Known(running), KVUsage: Known(used), CapacityTokens: Known(c.told)}
				if !c.still {
					page.OutputTokens = Known(float64(100 * i))
				}
				d.r.Scraped(d.now, u.id, &page)
			}
			if u.capacity < c.min || u.capacity > c.max {
				t.Errorf("believed are %.0f tokens, want %.0f to %.0f", u.capacity, c.min, c.max)
			}
			terms := d.r.Explain(d.now, prompt("next", 20_000/64), d.targets)
			if got := terms[0].Memory > 0; got != c.memoryWait {
				t.Errorf("it waits %v s for room, want some: %v", terms[0].Memory, c.memoryWait)
			}
			if got := d.r.Snapshot(d.now)[0].Capacity; got != int(u.capacity/64) {
				t.Errorf("its cache is believed to hold %d blocks, want %.0f", got, u.capacity/64)
			}
			d.r.Scraped(d.now.Add(time.Second), u.id, &Load{CapacityTokens: Known(c.told), OutputTokens: Known(0), StartTime: Known(5)})
			if u.capacity != c.told && !c.still {
				t.Errorf("after a restart %.0f tokens are believed, want the %.0f that its page tells", u.capacity, c.told)
			}
		})
	}
}

// What a prompt shares with others takes room once, and so isn't counted for each.
func TestWhatRunningRequestsShareIsNoRoom(t *testing.T) {
	const room, running = 400_000, 100
	d := newDesk(t, 1)
	u := d.r.upstream(d.r.clock.at(d.now), d.targets[0].ID)
	for i := range running {
		d.r.FirstByte(d.now, d.pick(prompt("shared", 100, fmt.Sprint("own", i), 10)).Ticket)
	}
	for i := range 5 {
		d.now = d.now.Add(time.Second)
		d.r.Scraped(d.now, u.id, &Load{
			Waiting: Known(0), Running: Known(running), KVUsage: Known((6_400 + running*740.) / room), CapacityTokens: Known(room), OutputTokens: Known(float64(i)),
		})
	}
	if u.capacity != room {
		t.Errorf("believed are %.0f tokens, want the %d that are told", u.capacity, room)
	}
}

// A few streams on one document meet at the upstream that holds it, long before
// the document is popular among all requests.
func TestADocumentOfAFewStreamsIsNoRoom(t *testing.T) {
	const room, document, question = 400_000, 470, 10
	for _, upstreams := range []int{1, 4, 8, 16, 32} {
		for _, streams := range []int{2, 8, 12, 18} {
			d := newDesk(t, upstreams)
			at := make([]int, upstreams)
			for i := range streams {
				c := d.pick(prompt("document", document, i, question))
				at[c.Index]++
				d.now = d.now.Add(c.FirstToken)
				d.r.FirstByte(d.now, c.Ticket)
			}
			for i, n := range at {
				if n == 0 {
					continue
				}
				used := 64 * (document + question*float64(n)) / room
				for page := range 5 {
					d.now = d.now.Add(100 * time.Millisecond)
					d.r.Scraped(d.now, d.targets[i].ID, &Load{Waiting: Known(0), Running: Known(float64(n)), KVUsage: Known(used), CapacityTokens: Known(room), OutputTokens: Known(float64(page))})
				}
				if u := d.r.upstreams[d.r.slots[d.targets[i].ID]]; u.capacity != room {
					t.Errorf("%d upstreams, %d streams on a document, %d of them there: believed are %.0f tokens, want the %d that are told", upstreams, streams, n, u.capacity, room)
				}
			}
		}
	}
}
