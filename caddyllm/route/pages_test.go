package route

import (
	"fmt"
	"testing"
	"time"
)

// FC-52: an engine that says that it keeps no prefixes has no claim to what it
// computed before.
func TestFC52PrefixCacheSwitchedOff(t *testing.T) {
	d := newDesk(t, 3)
	off, on := Known(0), Known(1)
	quiet := func() {
		for i, cache := range []Num{off, on, {}} {
			page := Load{Waiting: Known(0), Running: Known(0), CapacityTokens: Known(64_000), PrefixCache: cache}
			d.r.Scraped(d.now, d.targets[i].ID, &page)
		}
	}
	quiet()
	for i := range 3 { // each upstream serves a prompt of its own
		all := d.targets
		d.targets = all[i : i+1]
		d.serve(prompt(i, 20))
		d.targets = all
	}
	quiet()
	if c := d.serve(prompt(0, 20)); c.MatchedBlocks != 0 || c.Reason == ReasonPrefix {
		t.Errorf("what an engine without a prefix cache has served matches %d blocks, by %q", c.MatchedBlocks, c.Reason)
	}
	for i := 1; i < 3; i++ {
		if c := d.serve(prompt(i, 20)); c.MatchedBlocks != 20 || c.Index != i {
			t.Errorf("upstream %d's prompt goes to %d with %d blocks, want there with 20", i, c.Index, c.MatchedBlocks)
		}
	}
	if u := d.r.Snapshot(d.now)[0]; u.Entries != 0 || u.Capacity != 0 {
		t.Errorf("%d blocks of %d are held where none are kept", u.Entries, u.Capacity)
	}
}

// FC-67: an engine that tells how many requests run, and not how many wait,
// has no short queue but an unknown one.
func TestFC67HalfAQueueIsNotAShortOne(t *testing.T) {
	d := newDesk(t, 3)
	for range 3 {
		d.now = d.now.Add(time.Second)
		d.r.Scraped(d.now, d.targets[0].ID, &Load{Running: Known(1)})
		for i := range 2 {
			d.scrape(i+1, 2, 1)
		}
	}
	terms := d.r.Explain(d.now, prompt("cold", 2), d.targets)
	if terms[0].Queue <= 0 || terms[0].Queue != terms[1].Queue || terms[1].Queue != terms[2].Queue {
		t.Errorf("queues of %v, %v and %v s, want the first like the others", terms[0].Queue, terms[1].Queue, terms[2].Queue)
	}
	if u := d.r.Snapshot(d.now)[0]; u.Fresh || u.State != StateUnknown {
		t.Errorf("half a queue counts as known: %q", u.State)
	}
}

// A sleeping engine gets what no other can take, and has lost its cache.
func TestSleepingEngines(t *testing.T) {
	d := newDesk(t, 2)
	pages := func(awake ...float64) {
		d.now = d.now.Add(time.Second)
		for i, a := range awake {
			d.r.Scraped(d.now, d.targets[i].ID, &Load{Waiting: Known(0), Running: Known(0), Awake: Known(a)})
		}
	}
	pages(1, 1)
	home := d.serve(prompt("talk", 20)).Index
	if c := d.serve(prompt("talk", 20)); c.Index != home || c.MatchedBlocks != 20 {
		t.Fatalf("a turn goes to %d with %d blocks, want %d with 20", c.Index, c.MatchedBlocks, home)
	}
	asleep := []float64{1, 1}
	asleep[home] = 0
	pages(asleep...)
	for i := range 20 {
		pages(asleep...)
		if c := d.serve(prompt(i, 5)); c.Index == home {
			t.Fatalf("prompt %d goes to an engine that sleeps, by %q", i, c.Reason)
		}
	}
	if u := d.r.Snapshot(d.now)[home]; u.State != StateAsleep || u.Entries != 0 {
		t.Errorf("%q, with %d blocks, want asleep with none", u.State, u.Entries)
	}
	all := d.targets
	d.targets = all[home : home+1]
	d.serve(prompt("alone", 5)) // there is no other
	d.targets = all
	pages(1, 1)
	counts := make([]int, 2)
	for i := range 40 {
		counts[d.serve(prompt(fmt.Sprint("awake", i), 2)).Index]++
	}
	if counts[home] < 10 {
		t.Errorf("awake again, it gets %d of 40 cold prompts", counts[home])
	}
	// A page that says so and then is gone is not believed for ever.
	pages(asleep...)
	d.now = d.now.Add(10 * time.Minute)
	clear(counts)
	for i := range 40 {
		counts[d.serve(prompt(fmt.Sprint("gone", i), 2)).Index]++
	}
	if counts[home] < 5 {
		t.Errorf("minutes after its last page, it gets %d of 40 cold prompts", counts[home])
	}
}

// Engines may be busy with others' requests when the gateway begins: their first
// page tells.
func TestTheFirstPageTellsOfOthers(t *testing.T) {
	d := newDesk(t, 3)
	for i, waiting := range []float64{10, 1, 1} {
		d.scrape(i, waiting, 4)
	}
	for i := range 20 {
		c := d.pick(prompt(fmt.Sprint("cold", i), 4))
		if c.Index == 0 {
			t.Errorf("request %d goes where ten of others wait", i)
		}
		d.r.Done(d.now, c.Ticket, Cancelled, nil)
	}
}
