package route

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// FC-27: prompts shorter than a block have no hash, and go to all alike.
func TestFC27PromptsShorterThanABlockAreSpread(t *testing.T) {
	d := newDesk(t, 4)
	counts := make([]int, 4)
	for i := range 400 {
		counts[d.serve(&Request{Stream: true, Bytes: []int{0, 1, 15, 16, 17, 2}[i%6]}).Index]++
	}
	for i, n := range counts {
		if n < 57 || n > 143 {
			t.Errorf("short prompts land %v: upstream %d has %d of 400, want 57 to 143", counts, i, n)
		}
	}
	whole := prompt("one block", 1)
	d.serve(whole)
	if c := d.serve(whole); c.MatchedBlocks != 1 {
		t.Errorf("%d blocks of a prompt of exactly one are found again, want 1", c.MatchedBlocks)
	}
}

// FC-34: there is no least match to configure, and what is shorter than a block
// doesn't keep a conversation from being learned: once a block of it was served
// somewhere, every turn goes there.
func TestFC34ShortMatchesAreLearnedFrom(t *testing.T) {
	const turn = 1024
	for _, block := range []int{256, 4096} {
		d := newDesk(t, 3)
		d.r = New(Options{BlockBytes: block, Seed: 3})
		home, stuck := -1, 0
		for i := 1; i <= 12; i++ {
			q := prompt("talk", i*turn/block)
			q.Bytes = i * turn
			c := d.serve(q)
			if (i-1)*turn >= block {
				stuck++
				if c.Index != home || c.Reason != ReasonPrefix {
					t.Errorf("blocks of %d: turn %d goes to %d by %q, want %d by its prefix", block, i, c.Index, c.Reason, home)
				}
			}
			home = c.Index
		}
		if stuck < 8 {
			t.Errorf("blocks of %d: only %d turns had a block to be found by", block, stuck)
		}
	}
}

// FC-40: an engine stuck on prompts of its own knows few prefixes and has a
// long queue: a cold prompt goes to the one that knows much and is idle.
func TestFC40AMissLooksAtLoad(t *testing.T) {
	d := newDesk(t, 2)
	full := d.targets
	d.targets = full[1:]
	for i := range 160 { // 160 times 320 KiB: 50 MB
		d.serve(prompt("known", 1, i, 1280))
	}
	d.targets = full
	for range 3 {
		d.now = d.now.Add(time.Second)
		d.scrape(0, 20, 4)
		d.scrape(1, 0, 0)
	}
	if u := d.r.Snapshot(d.now); u[0].Entries != 0 || u[1].Entries < 1000 {
		t.Fatalf("%d and %d blocks are held, want none and many", u[0].Entries, u[1].Entries)
	}
	idle := 0
	for i := range 100 {
		if i%4 == 0 {
			d.now = d.now.Add(time.Second)
			d.scrape(0, 20, float64(4+i/4%2)) // it moves, or it wouldn't be believed for long
			d.scrape(1, 0, 0)
		}
		if d.serve(prompt("cold", 1, i, 8)).Index == 1 {
			idle++
		}
	}
	if idle < 95 {
		t.Errorf("the idle engine gets %d of 100 cold prompts, want 95", idle)
	}
}

// FC-46: upstreams that come and go leave nothing, also where a request was
// still streaming when its upstream was taken away.
func TestFC46RemovedUpstreamsLeaveNothing(t *testing.T) {
	d := newDesk(t, 0)
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	// A pool of two, one of which is replaced 1,000 times.
	d.targets = []Target{{ID: "stays:8000"}, {}}
	streaming := Choice{}
	var early float64
	for cycle := range 1000 {
		d.targets[1] = Target{ID: fmt.Sprintf("pod%d:8000", cycle)}
		both := d.targets
		d.targets = both[1:]
		last := d.pick(prompt("long", 1, cycle, 19))
		d.r.FirstByte(d.now, last.Ticket)
		d.targets = both
		for i := range 50 {
			d.serve(prompt(cycle, 1, i, 19))
		}
		// The one of the cycle before ends after its upstream is gone.
		d.r.Done(d.now, streaming.Ticket, Completed, nil)
		streaming = last
		d.now = d.now.Add(10 * time.Minute)
		d.r.Scraped(d.now, "stays:8000", &Load{Waiting: Known(0), Running: Known(0)})
		if cycle == 100 {
			early = heap()
		}
	}
	if late := heap(); late > early*1.1 {
		t.Errorf("the heap grows from %.0f to %.0f bytes in 900 cycles", early, late)
	}
	d.r.Done(d.now, streaming.Ticket, Completed, nil)
	d.targets = d.targets[:1]
	d.now = d.now.Add(forgetAfter + time.Minute)
	d.serve(prompt("later", 3))
	left := d.r.Snapshot(d.now)
	if len(left) != 1 || left[0].ID != "stays:8000" {
		t.Errorf("%d upstreams are remembered, want the one that is left", len(left))
	}
	if got := d.r.index.Len(); got != left[0].Entries {
		t.Errorf("%d blocks are held, %d by the upstream that is left", got, left[0].Entries)
	}
	d.idle()
}

// FC-47: unique prompts without end, then a burst of very long ones, stay within
// the bound of the index, and conversations that go on are still found.
func TestFC47MemoryIsBounded(t *testing.T) {
	const bound = 4 << 20
	d := newDesk(t, 64)
	d.r = New(Options{Seed: 1, MemoryBytes: bound})
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	home := make([]int, 5)
	talk := func(turn int) {
		t.Helper()
		for i := range home {
			c := d.serve(prompt(fmt.Sprint("talk", i), 40+turn))
			if turn > 0 && (c.Index != home[i] || c.MatchedBlocks < 39+turn) {
				t.Errorf("turn %d of conversation %d goes to %d with %d blocks, want %d with all", turn, i, c.Index, c.MatchedBlocks, home[i])
			}
			home[i] = c.Index
		}
	}
	unique := func(n, blocks int) {
		chain := make([]uint64, blocks)
		for i := range n {
			for b := range chain {
				chain[b] = mix(uint64(i*len(chain)+b+1) ^ uint64(blocks)<<40)
			}
			d.serve(&Request{Chain: chain, Bytes: len(chain) * defaultBlockBytes, Stream: true})
		}
	}
	// 200,000 entries fit; half a million come.
	for turn := range 4 {
		talk(turn)
		unique(1000, 128)
	}
	talk(4)
	unique(40, 4096) // 1 MiB each
	talk(5)
	if got := heap() - before; got > 2*bound {
		t.Errorf("%d bytes are kept with a bound of %d", got, bound)
	}
}

// FC-53: requests don't weigh the same: a long prompt is more than many short
// ones, and one request with sixteen answers is sixteen sequences.
func TestFC53RequestsDoNotWeighTheSame(t *testing.T) {
	d := newDesk(t, 2)
	long := d.pick(prompt("long", 1600)) // 400 KiB
	other := 0
	for i := range 6 {
		if c := d.pick(&Request{Bytes: 200, Stream: true}); c.Index != long.Index {
			other++
		}
		d.now = d.now.Add(time.Duration(i) * time.Millisecond)
	}
	if other < 5 {
		t.Errorf("%d of 6 short prompts go beside the long one, want 5", other)
	}

	// Sixteen sequences decode on one engine; short prompts avoid them, before
	// their first token and after it.
	d = newDesk(t, 2)
	many := prompt("many", 8)
	many.Sequences = 16
	heavy := d.pick(many)
	other = 0
	for i := range 4 {
		if i == 2 {
			d.now = d.now.Add(400 * time.Millisecond)
			d.r.FirstByte(d.now, heavy.Ticket)
		}
		c := d.pick(prompt("small", 1, i, 1))
		if c.Index != heavy.Index {
			other++
		}
		d.r.FirstByte(d.now, c.Ticket)
	}
	if other < 4 {
		t.Errorf("%d of 4 short prompts go beside the request with sixteen answers, want all", other)
	}
	// A page that shows our sixteen sequences shows nobody else's.
	for range 3 {
		d.now = d.now.Add(time.Second)
		for i := range d.targets {
			own := 0.0
			if i == heavy.Index {
				own = 16
			} else {
				own = 4
			}
			d.scrape(i, 0, own)
		}
	}
	for _, u := range d.r.upstreams {
		if u.brought != (others{}) {
			t.Errorf("%s: our own sequences count as load of others: %+v", u.id, u.brought)
		}
	}
	d.r.Done(d.now, heavy.Ticket, Completed, nil)
	if u := d.r.Snapshot(d.now)[heavy.Index]; u.Decode != 0 {
		t.Errorf("%d requests decode after the end", u.Decode)
	}
}

// FC-54: of two machines, four times apart, the slow one gets its share and no
// more, without a weight: the speed is learned.
func TestFC54UnequalMachines(t *testing.T) {
	f := newFarm(t, 2)
	f.engines[0].slowness = 4
	counts := make([]int, 2)
	oneByOne := func(n int, seed string) {
		for i := range n {
			done := false
			counts[f.send(prompt(seed, 1, i, 40), 100*time.Millisecond, func() { done = true })]++
			for !done {
				f.step()
			}
		}
	}
	// At first both must show what they are.
	oneByOne(2*ownSpeedAfter, "learn")
	clear(counts)
	oneByOne(200, "alone")
	if counts[0] > 50 {
		t.Errorf("of 200 cold prompts, one at a time, the slow machine gets %d, want at most a fifth and a few", counts[0])
	}
	clear(counts)
	next := 0
	var send func()
	send = func() {
		next++
		counts[f.send(prompt("crowd", 1, next, 40), 100*time.Millisecond, send)]++
	}
	for range 40 {
		send()
	}
	for range 3000 {
		f.step()
	}
	if share := float64(counts[1]) / float64(counts[0]+counts[1]); share < 0.7 || share > 0.9 {
		t.Errorf("with 40 at a time the machines get %v, want about 1 to 4", counts)
	}
}

// FC-55: two proxies with the same upstreams in another order share nothing and
// take turns; a conversation still has one upstream.
func TestFC55SeveralProxies(t *testing.T) {
	for name, system := range map[string]int{"their own beginnings": 0, "one system prompt": 12} {
		a, b := newDesk(t, 4), newDesk(t, 4)
		b.r = New(Options{Seed: 99})
		slices.Reverse(b.targets)
		proxies := []*desk{a, b}
		served := make([]map[string]int, 100)
		n := 0
		for turn := range 6 {
			for talk := range served {
				if turn == 0 {
					served[talk] = make(map[string]int)
				}
				d := proxies[n%2]
				n++
				c := d.serve(prompt("system", system, talk, 8+6*turn))
				served[talk][d.targets[c.Index].ID]++
				a.now, b.now = d.now, d.now
				if n%5 == 0 {
					for _, p := range proxies {
						for i := range p.targets {
							p.scrape(i, 0, 0)
						}
					}
				}
			}
			n++ // so that a conversation alternates as well
		}
		together := 0
		for _, by := range served {
			most := 0
			for _, k := range by {
				most = max(most, k)
			}
			together += most
		}
		if together < 510 {
			t.Errorf("%s: %d of 600 turns are on their conversation's upstream, want 510", name, together)
		}
	}
}

// FC-56: a session's home wins over what a prompt's beginning says, and never
// over health or a queue that costs more than the prompt.
func TestFC56ExplicitKey(t *testing.T) {
	d := newDesk(t, 3)
	home := d.serve(prompt("first", 20)).Index
	at := func(q *Request) Choice {
		t.Helper()
		d.targets[home].Home = true
		defer func() { d.targets[home].Home = false }()
		return d.serve(q)
	}
	for i := range 20 { // prompts that share nothing
		if c := at(prompt(fmt.Sprint("unrelated", i), 20)); c.Index != home || c.Reason != ReasonSession {
			t.Errorf("prompt %d of the session goes to %d by %q, want %d by its session", i, c.Index, c.Reason, home)
		}
	}
	// Another holds the prompt.
	var elsewhere Choice
	for i := 0; ; i++ {
		if elsewhere = d.serve(prompt(fmt.Sprint("held", i), 20)); elsewhere.Index != home {
			if c := at(prompt(fmt.Sprint("held", i), 24)); c.Index != home || c.Reason != ReasonSession {
				t.Errorf("a prompt that %d holds goes to %d by %q, want %d by its session", elsewhere.Index, c.Index, c.Reason, home)
			}
			break
		}
	}
	// Without a key all is as ever.
	counts := make([]int, 3)
	for i := range 90 {
		counts[d.serve(prompt(fmt.Sprint("no key", i), 4)).Index]++
	}
	if slices.Min(counts) < 15 {
		t.Errorf("prompts without a key go %v", counts)
	}
	// A queue of many times the prompt's work.
	all := d.targets
	d.targets = all[home : home+1]
	var queue []Choice
	for i := range 10 {
		queue = append(queue, d.pick(prompt("queue", 1, i, 40)))
	}
	d.targets = all
	if c := at(prompt("overload", 20)); c.Index == home {
		t.Errorf("the session waits behind %d long prompts, by %q", len(queue), c.Reason)
	}
	for _, c := range queue {
		d.r.Done(d.now, c.Ticket, Cancelled, nil)
	}
	d.r.Done(d.now, d.pickAt(home, prompt("fails", 3)).Ticket, Failed, nil)
	if c := at(prompt("unwell", 20)); c.Index == home {
		t.Errorf("the session goes to an upstream that just failed, by %q", c.Reason)
	}
}

// pickAt and serveAt are pick and serve where only one upstream is available.
func (d *desk) pickAt(i int, q *Request) Choice { return d.only(i, func() Choice { return d.pick(q) }) }
func (d *desk) serveAt(i int, q *Request) Choice {
	return d.only(i, func() Choice { return d.serve(q) })
}

func (d *desk) only(i int, choose func() Choice) Choice {
	d.t.Helper()
	all := d.targets
	d.targets = all[i : i+1]
	c := choose()
	d.targets = all
	c.Index = i
	return c
}
