package route

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Whatever pages, clocks and releases do, and whoever comes and goes under
// whatever name, each Pick chooses a target, costs are numbers, and reservations
// return to zero.
func testProperties(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	d := newDesk(t, 1+rng.IntN(12))
	all := d.targets
	var open []Choice
	for range 400 {
		d.now = d.now.Add(time.Duration(rng.IntN(400)-50) * time.Millisecond)
		switch rng.IntN(100) {
		case 0: // the clock is set, or the machine slept
			d.now = d.now.Add(time.Duration(rng.IntN(1e6)-5e5) * time.Second)
		case 1: // the pool changes, and may have a name twice
			d.targets = nil
			for range 1 + rng.IntN(len(all)) {
				d.targets = append(d.targets, Target{ID: all[rng.IntN(len(all))].ID, Tried: rng.IntN(8) == 0, Home: rng.IntN(8) == 0})
			}
		}
		id := all[rng.IntN(len(all))].ID
		switch rng.IntN(6) {
		case 0:
			if l := oddPage(rng); l != nil {
				d.r.Scraped(d.now, id, l)
			} else {
				d.r.ScrapeFailed(d.now, id)
			}
		case 1:
			if len(open) > 0 {
				d.r.FirstByte(d.now, open[rng.IntN(len(open))].Ticket)
			}
		case 2:
			if len(open) > 0 {
				d.r.Done(d.now, open[rng.IntN(len(open))].Ticket, End(rng.IntN(4)), &Usage{
					PromptTokens: rng.IntN(1e6) - 10, CompletionTokens: rng.IntN(1000) - 10, CachedTokens: rng.IntN(1e6) - 10,
					CachedKnown: rng.IntN(2) == 0, Form: Form(rng.IntN(256)),
				})
			}
		default:
			c := d.pick(oddPrompt(rng))
			if c.Index < 0 || c.Index >= len(d.targets) || c.FirstToken < 0 {
				t.Fatalf("seed %d: Pick = %+v", seed, c)
			}
			c.Pulse.Beat(d.now, time.Duration(rng.IntN(3000)-100)*time.Millisecond)
			ordered(t, seed, d.r)
			open = append(open, c)
		}
	}
	// Half of what is open is released, and the rest never.
	for _, c := range open[:len(open)/2] {
		d.r.Done(d.now, c.Ticket, Cancelled, nil)
	}
	d.targets = all
	d.now = d.now.Add(abandonedAfter + time.Minute)
	d.serve(prompt("later", 1))
	d.idle()
	d.now = d.now.Add(2 * max(maxSuspension, ownSpeedFor))
	evenly(t, seed, d, rng)
}

// oddPage is a page of whatever numbers, nil for none.
func oddPage(rng *rand.Rand) *Load {
	if rng.IntN(8) == 0 {
		return nil
	}
	odd := []float64{0, 1, 5, 1e9, 1e300, -3, math.NaN(), math.Inf(1), math.Inf(-1), 0.5, 97, math.SmallestNonzeroFloat64, math.MaxFloat64}
	num := func() Num { return Num{Value: odd[rng.IntN(len(odd))], Known: rng.IntN(3) > 0} }
	return &Load{num(), num(), num(), num(), num(), num(), num(), num(), num(), num(), num(), num(), num()}
}

func oddPrompt(rng *rand.Rand) *Request {
	q := prompt(rng.IntN(20), rng.IntN(40))
	odd := []int{0, 1, -1, 1000, math.MaxInt, math.MinInt}
	q.Stream = rng.IntN(2) == 0
	q.ExtraTokens = rng.IntN(3) * 1000
	q.Model = uint64(rng.IntN(3))
	if rng.IntN(10) == 0 {
		q.Bytes, q.ExtraTokens = odd[rng.IntN(len(odd))], odd[rng.IntN(len(odd))]
		q.MaxTokens, q.Sequences = odd[rng.IntN(len(odd))], odd[rng.IntN(len(odd))]
	}
	q.Unread = rng.IntN(8) == 0
	return q
}

// ordered checks that the last decision's costs are numbers, which alone makes
// them a total order.
func ordered(t *testing.T, seed uint64, r *Router) {
	t.Helper()
	for i, c := range r.candidates {
		if math.IsInf(c.cost, 1) && !c.home && len(r.candidates) > 1 {
			continue // it was not looked at, since another is certainly better
		}
		for _, v := range []float64{c.cost, c.first, c.kept} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("seed %d: candidate %d costs %v, %v and %v", seed, i, c.cost, c.first, c.kept)
			}
		}
		if c.cost <= 0 || c.first <= 0 {
			t.Fatalf("seed %d: candidate %d costs %v, with a first token in %v", seed, i, c.cost, c.first)
		}
	}
}

// evenly checks that after a quiet while nobody is excluded, nor takes all:
// what was believed before is learned anew.
func evenly(t *testing.T, seed uint64, d *desk, rng *rand.Rand) {
	t.Helper()
	n := len(d.targets)
	counts := make([]int, n)
	for i := range 300 * n {
		c := d.serve(prompt("after", rng.IntN(2), fmt.Sprint(i), 3))
		if i >= 100*n {
			counts[c.Index]++
		}
	}
	if least, most := slices.Min(counts), slices.Max(counts); least == 0 || n > 1 && most*10 > 9*200*n {
		t.Fatalf("seed %d: after all is quiet the upstreams get %v", seed, counts)
	}
}

func TestProperties(t *testing.T) {
	for seed := range uint64(20) {
		testProperties(t, seed)
	}
}

func FuzzProperties(f *testing.F) {
	f.Add(uint64(3))
	f.Fuzz(testProperties)
}

func TestPickAllocatesNothingWhenWarm(t *testing.T) {
	for _, n := range []int{8, 512} {
		d := newDesk(t, n)
		warm := make([]*Request, 64)
		for i := range warm {
			warm[i] = prompt(i, 128)
		}
		run := func(i int) {
			c, _ := d.r.Pick(d.now, warm[i%len(warm)], d.targets)
			d.r.FirstByte(d.now, c.Ticket)
			d.r.Done(d.now, c.Ticket, Completed, nil)
		}
		// The window of recent requests is filled first.
		for i := range min(windowPerUpstream*n, windowMax) + len(warm) {
			run(i)
		}
		i := 0
		if got := testing.AllocsPerRun(500, func() { i++; run(i) }); got != 0 {
			t.Errorf("%d upstreams: a decision allocates %v times, want 0", n, got)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	for _, n := range []int{8, 64, 512} {
		b.Run(fmt.Sprint(n, "_upstreams"), func(b *testing.B) {
			r := New(Options{})
			now := time.Unix(1_000_000, 0)
			var targets []Target
			for i := range n {
				targets = append(targets, Target{ID: fmt.Sprint("upstream", i)})
			}
			prompts := make([]*Request, 256)
			for i := range prompts {
				prompts[i] = prompt(i, 128)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				now = now.Add(time.Millisecond)
				c, _ := r.Pick(now, prompts[i%len(prompts)], targets)
				r.FirstByte(now, c.Ticket)
				r.Done(now, c.Ticket, Completed, nil)
			}
		})
	}
}

// More upstreams than are remembered, and names that come back.
func TestTenThousandUpstreams(t *testing.T) {
	d := newDesk(t, maxUpstreams+500)
	for i := range 300 {
		d.now = d.now.Add(10 * time.Millisecond)
		q := prompt(i%200, 12)
		c := d.pick(q)
		d.r.FirstByte(d.now, c.Ticket)
		d.r.Done(d.now, c.Ticket, Completed, nil)
		if i%10 == 0 {
			d.r.Scraped(d.now, d.targets[i*30].ID, &Load{Waiting: Known(float64(i % 3)), Running: Known(1)})
		}
	}
	if got := len(d.r.Snapshot(d.now)); got != maxUpstreams {
		t.Errorf("%d upstreams are remembered, want %d", got, maxUpstreams)
	}
	d.idle()
	// All go, and others come under new names and under old ones.
	d.now = d.now.Add(forgetAfter + time.Minute)
	d.targets = append(d.targets[:50:50], Target{ID: "new1:8000"}, Target{ID: "new2:8000"})
	used := make(map[int]bool)
	for i := range 3000 {
		used[d.serve(prompt(fmt.Sprint("new", i), 3)).Index] = true
	}
	if len(used) != len(d.targets) || len(d.r.Snapshot(d.now)) != len(d.targets) {
		t.Errorf("%d of %d upstreams are used, %d remembered", len(used), len(d.targets), len(d.r.Snapshot(d.now)))
	}
	if got := d.r.index.Len(); got > 3000*3*2 {
		t.Errorf("%d blocks are held, most by upstreams that are gone", got)
	}
}

// A wall clock that is set back a day suspends, ages and stalls nobody for a
// day.
func TestClockSetBack(t *testing.T) {
	d := newDesk(t, 3)
	for i := range 200 {
		d.serve(prompt(fmt.Sprint("before", i), 8))
	}
	failed := d.pick(prompt("fails", 2))
	d.r.Done(d.now, failed.Ticket, Failed, nil)
	for i := range d.targets {
		d.scrape(i, float64(10*i), 1)
	}
	open := d.pick(prompt("open", 2))
	d.now = d.now.Add(-24 * time.Hour)
	d.r.FirstByte(d.now, open.Ticket)
	d.r.Done(d.now, open.Ticket, Completed, nil)
	d.now = d.now.Add(staleMax + maxSuspension)
	counts := make([]int, 3)
	for i := range 300 {
		counts[d.serve(prompt(fmt.Sprint("after", i), 8)).Index]++
	}
	if slices.Min(counts) < 50 {
		t.Errorf("minutes after the clock was set back 300 cold prompts go %v", counts)
	}
	d.idle()
}

// A client that claims a body of 60 GB, and sends no more of it, makes nobody
// believe that its upstream has days of work: no engine takes a prompt that
// doesn't fit.
func TestClaimedLengthsAreNoQueue(t *testing.T) {
	d := newDesk(t, 3)
	for i := range d.targets {
		d.r.Scraped(d.now, d.targets[i].ID, &Load{Waiting: Known(0), Running: Known(0), CapacityTokens: Known(200_000)})
	}
	c := d.pick(&Request{Stream: true, Bytes: 60e9})
	if c.PromptTokens > 200_000 {
		t.Errorf("the prompt is held for %d tokens, and no engine has room for more than 200,000", c.PromptTokens)
	}
	if c.FirstToken > 10*time.Minute {
		t.Errorf("its first token is predicted in %v", c.FirstToken)
	}
}
