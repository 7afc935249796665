package route

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Whatever pages, clocks and releases do, each Pick chooses a target, costs are
// numbers, and reservations return to zero.
func testProperties(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	d := newDesk(t, 1+rng.IntN(12))
	odd := []float64{0, 1, 5, 1e9, 1e300, -3, math.NaN(), math.Inf(1), math.Inf(-1), 0.5, 97}
	num := func() Num { return Num{Value: odd[rng.IntN(len(odd))], Known: rng.IntN(3) > 0} }
	var open []Choice
	for range 400 {
		d.now = d.now.Add(time.Duration(rng.IntN(400)-50) * time.Millisecond)
		switch rng.IntN(6) {
		case 0:
			l := &Load{num(), num(), num(), num(), num(), num(), num(), num(), num(), num(), num(), num(), num()}
			d.r.Scraped(d.now, d.targets[rng.IntN(len(d.targets))].ID, l)
		case 1:
			if len(open) > 0 {
				d.r.FirstByte(d.now, open[rng.IntN(len(open))].Ticket)
			}
		case 2:
			if len(open) > 0 {
				d.r.Done(d.now, open[rng.IntN(len(open))].Ticket, End(rng.IntN(4)), &Usage{
					PromptTokens: rng.IntN(1e6) - 10, CompletionTokens: rng.IntN(1000), CachedTokens: rng.IntN(1e6), CachedKnown: rng.IntN(2) == 0,
				})
			}
		default:
			q := prompt(rng.IntN(20), rng.IntN(40))
			q.Stream = rng.IntN(2) == 0
			q.ExtraTokens = rng.IntN(3) * 1000
			q.Model = uint64(rng.IntN(3))
			c := d.pick(q)
			if c.Index < 0 || c.Index >= len(d.targets) || c.FirstToken < 0 {
				t.Fatalf("seed %d: Pick = %+v", seed, c)
			}
			for i, k := range d.r.candidates {
				if math.IsNaN(k.cost) || math.IsInf(k.cost, 0) || k.cost <= 0 {
					t.Fatalf("seed %d: candidate %d costs %v", seed, i, k.cost)
				}
			}
			open = append(open, c)
		}
	}
	for _, c := range open {
		d.r.Done(d.now, c.Ticket, Cancelled, nil)
	}
	d.idle()
	// Nobody is excluded for ever: after a quiet while all are used again.
	d.now = d.now.Add(2 * maxSuspension)
	used := make(map[int]bool)
	for i := range 200 * len(d.targets) {
		used[d.serve(prompt("after", 1, i, 2, i, 1)).Index] = true
		used[d.serve(prompt(i, 3)).Index] = true
	}
	if len(used) != len(d.targets) {
		t.Fatalf("seed %d: %d of %d upstreams are used after all is quiet", seed, len(used), len(d.targets))
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
