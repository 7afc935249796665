package route

import (
	"fmt"
	"testing"
	"time"
)

// counts sends so many new prompts, one each 50 ms and each answered by serve,
// and tells how many of them each upstream got.
func (d *desk) counts(from, n int, serve func(Choice)) []int {
	d.t.Helper()
	counts := make([]int, len(d.targets))
	for i := range n {
		c := d.pick(prompt(from+i, 4))
		counts[c.Index]++
		serve(c)
		d.now = d.now.Add(50 * time.Millisecond)
	}
	return counts
}

func (d *desk) complete(c Choice) {
	d.r.FirstByte(d.now, c.Ticket)
	d.r.Done(d.now, c.Ticket, Completed, nil)
}

// FC-83: an upstream is left alone for as long as it asks, within bounds, and
// used again after that.
func TestFC83RefusalsAreRespectedForABoundedTime(t *testing.T) {
	for _, c := range []struct {
		asked, left time.Duration
	}{
		{5 * time.Second, 5 * time.Second},
		{0, firstSuspension},
		{-time.Hour, firstSuspension},
		{999_999 * time.Second, maxSuspension},
		{1<<63 - 1, maxSuspension},
	} {
		t.Run(fmt.Sprint(c.asked), func(t *testing.T) {
			d := newDesk(t, 3)
			d.r.Refused(d.now, d.pick(prompt("first", 4)).Ticket, c.asked)
			refused := -1
			for i, u := range d.r.Snapshot(d.now) {
				if u.Failures > 0 {
					refused = i
				}
			}
			start := d.now
			for d.now.Sub(start) < c.left {
				if got := d.pick(prompt(d.now, 4)); got.Index == refused {
					t.Fatalf("a prompt went there %v after", d.now.Sub(start))
				} else {
					d.complete(got)
				}
				d.now = d.now.Add(c.left / 50)
			}
			got := d.counts(1000, 60, d.complete)
			if got[refused] < 8 {
				t.Errorf("once the time is over it gets %d of 60 prompts, want a third", got[refused])
			}
			d.idle()
		})
	}
}

// An upstream that finishes what it has and refuses all that is new is not well
// for that: answers to requests of before say nothing of those to come.
func TestAnswersOfBeforeDontTakeBackARefusal(t *testing.T) {
	d := newDesk(t, 2)
	both := d.targets
	d.targets = both[:1]
	const home = 0
	var before []Choice
	for i := range 5 {
		before = append(before, d.pick(prompt("before", 2, i, 2)))
	}
	d.now = d.now.Add(time.Second)
	refused := d.pick(prompt("refused", 4))
	d.targets = both
	d.r.Refused(d.now, refused.Ticket, 10*time.Second)
	for _, c := range before {
		d.now = d.now.Add(100 * time.Millisecond)
		d.complete(c)
		if got := d.pick(prompt("before", 4, d.now, 1)); got.Index == home {
			t.Fatal("after an answer to an older request the refusal is forgotten")
		} else {
			d.complete(got)
		}
	}
	d.now = d.now.Add(10 * time.Second)
	if got := d.counts(0, 40, d.complete); got[home] < 8 {
		t.Errorf("after its time it gets %d of 40 prompts", got[home])
	}
	d.idle()
}

// Upstreams that fail fast look idle all the time, and still attract nothing:
// one that always fails, and one that fails every other time.
func TestFastFailuresAttractNothing(t *testing.T) {
	for name, fails := range map[string]func(n int) bool{
		"always":           func(int) bool { return true },
		"every other time": func(n int) bool { return n%2 == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, 3)
			type running struct {
				c   Choice
				end time.Time
			}
			var busy []running
			var counts [3]int
			for i := range 1200 { // a minute, so busy that no other is ever idle
				c := d.pick(prompt(i, 4))
				counts[c.Index]++
				if c.Index == 0 && fails(counts[0]) {
					d.r.Done(d.now, c.Ticket, Failed, nil)
				} else {
					busy = append(busy, running{c, d.now.Add(time.Second)})
				}
				d.now = d.now.Add(50 * time.Millisecond)
				for len(busy) > 0 && !busy[0].end.After(d.now) {
					d.complete(busy[0].c)
					busy = busy[1:]
				}
			}
			if most := 1200 / 3; counts[0] >= most {
				t.Errorf("it gets %d of 1200 prompts, want less than a third", counts[0])
			}
			if name == "always" && counts[0] > 20 {
				t.Errorf("it gets %d of 1200 prompts, want probes only", counts[0])
			}
		})
	}
}

// FC-82: what a server refuses teaches nothing: no prompt is remembered for it,
// no failure cleared, none counted.
func TestFC82RejectionsTeachNothing(t *testing.T) {
	d := newDesk(t, 2)
	for i := range 30 {
		c := d.pick(prompt("too long", i+1))
		d.now = d.now.Add(time.Millisecond)
		d.r.Done(d.now, c.Ticket, Rejected, nil)
	}
	for _, u := range d.r.Snapshot(d.now) {
		if u.Failures != 0 || u.Entries != 0 || u.Rate != priorSpeed.rate() {
			t.Errorf("%s: %d failures, %d blocks, %v tokens/s", u.ID, u.Failures, u.Entries, u.Rate)
		}
	}
	if got := d.counts(0, 50, d.complete); got[0] < 9 || got[1] < 9 {
		t.Errorf("afterwards prompts are spread %v", got)
	}

	// The door of a dead engine refuses bad requests as ever.
	dead := d.pick(prompt("dead", 4))
	d.r.Done(d.now, dead.Ticket, Failed, nil)
	for range 3 {
		d.now = d.now.Add(firstSuspension)
		probe := d.pick(prompt("dead", 4))
		for i := 0; probe.Index != dead.Index; i++ {
			d.complete(probe)
			probe = d.pick(prompt(i, 4))
		}
		if probe.Reason != ReasonProbe {
			t.Errorf("a bad request made a dead engine sound: %s", probe.Reason)
		}
		d.r.Done(d.now, probe.Ticket, Rejected, nil)
	}
	if got := d.r.Snapshot(d.now)[dead.Index].Failures; got != 1 {
		t.Errorf("%d failures are remembered, want 1", got)
	}
	d.idle()
}
