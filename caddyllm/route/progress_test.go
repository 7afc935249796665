package route

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// A long prompt is followed from step to step: each that is heard to end has done as
// many tokens of it as a step takes beside those that decode.
func TestALongPromptIsFollowedStepByStep(t *testing.T) {
	d, pulse := stepping(t)
	d.pick(prompt("long", 400)) // 25,600 tokens
	u := d.r.upstreams[0]
	queue := func() float64 { return d.r.Explain(d.now, prompt("next", 4), d.targets)[0].Queue }
	d.now = d.now.Add(40 * time.Millisecond)
	pulse.Beat(d.now, 40*time.Millisecond) // it is in the step that begins now
	most := float64(stepBudget - 1)
	for i := range 3 {
		p := d.progress(u)
		if done := float64(i) * most; p.done != done || p.inStep != most {
			t.Errorf("after %d steps %v tokens are done and %v in the next, want %v and %v", i, p.done, p.inStep, done, most)
		}
		before := queue()
		d.now = d.now.Add(900 * time.Millisecond)
		if got := before - queue(); !near(got, 0.9) {
			t.Errorf("step %d: in 0.9 s the queue is shorter by %v s", i, got)
		}
		// It ends sooner than thought, and what it did is done.
		pulse.Beat(d.now, 900*time.Millisecond)
	}
	p := d.progress(u)
	if left := 25_600 - 3*most; p.done != 3*most || p.inStep != left {
		t.Errorf("at the end %v are done and %v in the step, want %v and %v", p.done, p.inStep, 3*most, left)
	}
}

// What comes while a long prompt's last tokens are computed is in the same step, as
// far as that has room.
func TestTheEndOfALongPromptSharesItsStep(t *testing.T) {
	d, pulse := stepping(t)
	beat := func(gap time.Duration) {
		d.now = d.now.Add(gap)
		pulse.Beat(d.now, gap)
	}
	d.pick(prompt("long", 150)) // 9,600 tokens
	beat(40 * time.Millisecond)
	d.pick(prompt("short", 10)) // 640
	beat(500 * time.Millisecond)
	u := d.r.upstreams[0]
	p := d.progress(u)
	if want := 9_600 - float64(stepBudget-1) + 640; p.inStep != want {
		t.Errorf("%v tokens are in the step, want %v", p.inStep, want)
	}
	if behind := u.workBehind(&p, d.r.flights); behind > 1e-6 {
		t.Errorf("work of %v is behind it, want none", behind)
	}
}

// Who should have had its first token is less far than thought, and is begun anew
// with all that wait.
func TestAHitThatMissedIsSeenByTheStepsThatPass(t *testing.T) {
	d, pulse := stepping(t)
	d.pick(prompt("short", 10))
	u := d.r.upstreams[0]
	in := func() float64 { return d.progress(u).inStep }
	for i, want := range []float64{640, 0, 640} {
		d.now = d.now.Add(100 * time.Millisecond)
		pulse.Beat(d.now, 100*time.Millisecond)
		if got := in(); got != want {
			t.Errorf("%d steps after it came %v tokens are in the step, want %v", i+1, got, want)
		}
	}
}

// Where no stream tells of steps, they pass as they should.
func TestStepsPassUnheard(t *testing.T) {
	d := newDesk(t, 1)
	d.pick(prompt("long", 400))
	u := d.r.upstreams[0]
	before := d.progress(u)
	d.now = d.now.Add(3 * time.Second) // at 10,000 tokens a second
	after := d.progress(u)
	if before.done != 0 || before.inStep != stepBudget || after.done != 2*stepBudget {
		t.Errorf("%v are done at first and %v after 3 s, want none and two steps'", before.done, after.done)
	}
}

// Whatever becomes of requests, an upstream that has none is idle again.
func TestProgressEndsWithTheQueue(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	d := newDesk(t, 2)
	var open []Choice
	for step := range 5000 {
		d.now = d.now.Add(time.Duration(rng.IntN(60)) * time.Millisecond)
		switch n := len(open); {
		case n == 0 || rng.IntN(3) == 0 && step < 4500:
			open = append(open, d.pick(prompt(rng.IntN(50), 1+rng.IntN(300))))
		default:
			i := rng.IntN(n)
			c := open[i]
			switch rng.IntN(4) {
			case 0:
				d.r.FirstByte(d.now, c.Ticket)
			case 1:
				c.Pulse.Beat(d.now, time.Duration(rng.IntN(60))*time.Millisecond)
			default:
				d.r.Done(d.now, c.Ticket, End(rng.IntN(4)), nil)
				open[i] = open[n-1]
				open = open[:n-1]
			}
		}
		for _, u := range d.r.upstreams {
			p := d.progress(u)
			if bad := p.done < 0 || p.inStep < 0 || p.inStep > stepBudget || u.behind < 0 || u.context < 0; bad || len(u.queue) == 0 && p.done+p.inStep+u.behind != 0 {
				t.Fatalf("step %d: %+v, %v behind, context %v, queue of %d", step, p, u.behind, u.context, len(u.queue))
			}
			if u.decoding == 0 && u.context != 0 {
				t.Fatalf("step %d: a context of %v is left of those that decoded", step, u.context)
			}
		}
	}
}

// What steps take is learned, whatever the engine: to 2 % where they are as they
// always are, and one that surprises changes little.
func TestWhatStepsTakeIsLearned(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, engine := range [][stepParts]float64{{400, 0.8, 0.0026, 1, 9.75e-5}, {2000, 0.2, 0.0005, 0.9, 2e-5}} {
		truth := func(l *stepLoad) float64 {
			return engine[0] + engine[1]*l.sequences + engine[2]*l.context + engine[3]*l.tokens + engine[4]*l.pairs
		}
		load := func() *stepLoad {
			n := rng.Float64()
			tokens := 8192 * n * n
			return &stepLoad{100 * rng.Float64(), 300_000 * rng.Float64(), tokens, tokens * 20_000 * rng.Float64()}
		}
		var m stepModel
		for range 3000 {
			l := load()
			took := truth(l)
			if rng.IntN(50) == 0 {
				took *= 10
			}
			m.learn(&stepSample{load: *l, took: took})
		}
		off := 0.0
		for range 100 {
			l := load()
			off += math.Abs(m.tokens(l)/truth(l)-1) / 100
		}
		if off > 0.02 {
			t.Errorf("engine %v: steps are thought to be %.3f off in the mean", engine, off)
		}
	}
	var m stepModel
	l := &stepLoad{tokens: 1000}
	for range 10_000 {
		m.learn(&stepSample{load: *l, took: 0})
	}
	if got, least := m.tokens(l), stepLeast*l.plain(); !(got >= least) {
		t.Errorf("a step that takes no time is thought to take %v, want %v at least", got, least)
	}
}

// A step's chunks come one after the other; it is counted once, and so it is where
// its first tokens come before them.
func TestAStepIsCountedOnce(t *testing.T) {
	p := &Pulse{epoch: time.Unix(0, 0)}
	for i := range 100 {
		at := time.Duration(i+1) * 20 * time.Millisecond
		p.mark(int64(at))
		for j := range 5 {
			p.Beat(p.epoch.Add(at+time.Duration(j)*1500*time.Microsecond), 20*time.Millisecond)
		}
		if began, n := p.began(); began != at || n != int64(i+1) {
			t.Fatalf("%d steps have begun, the last at %v; want %d, at %v", n, began, i+1, at)
		}
	}
}

// progress is how far an upstream is now.
func (d *desk) progress(u *upstream) progress {
	return u.progressed(d.r.clock.at(d.now), d.r.flights)
}

// A few steps that were thought to have a context of a million tokens, and had none,
// outweighed thousands of others for as long.
func TestAFewOddStepsAreForgotten(t *testing.T) {
	var m stepModel
	rng := rand.New(rand.NewPCG(3, 3))
	usual := func(n int) {
		for range n {
			tokens, sequences := float64(rng.IntN(stepBudget)), float64(rng.IntN(60))
			l := stepLoad{sequences, 3000 * sequences, tokens, tokens * float64(rng.IntN(30_000))}
			m.learn(&stepSample{load: l, took: 1.2 * l.plain()})
		}
	}
	odd := stepLoad{tokens: 8192, pairs: 8192 * 1_000_000}
	long := stepLoad{sequences: 20, context: 60_000, tokens: 8192, pairs: 8192 * 30_000}
	usual(1000)
	before := m.tokens(&long)
	for range 40 {
		m.learn(&stepSample{load: odd, took: 9000})
	}
	usual(1500)
	if now := m.tokens(&long); now < 0.95*before || now > 1.05*before {
		t.Errorf("a long step is thought to be %.0f tokens long 1,500 steps after 40 odd ones, and was %.0f", now, before)
	}
}

// A step that was taken to have begun unheard is no measure of the next.
func TestAStepThatWasAssumedTeachesNothing(t *testing.T) {
	d, pulse := stepping(t)
	d.pick(prompt("long", 400))
	d.now = d.now.Add(100 * time.Millisecond)
	pulse.Beat(d.now, 100*time.Millisecond)
	d.pick(prompt("second", 1)) // follows what was heard
	d.now = d.now.Add(4 * time.Second)
	d.pick(prompt("third", 1))
	before := d.r.steps
	d.now = d.now.Add(300 * time.Millisecond)
	pulse.Beat(d.now, 100*time.Millisecond)
	d.pick(prompt("fourth", 1))
	if d.r.steps != before {
		t.Error("a step that began nobody knows when was learned")
	}
}

// Of thousands that wait a decision walks over some only.
func TestALongQueueIsNotFollowed(t *testing.T) {
	d := newDesk(t, 1)
	for i := range followMost + 1 {
		d.pick(prompt("unlike", 1, i, 1))
	}
	u := d.r.upstreams[0]
	before := u.progress
	d.now = d.now.Add(10 * time.Second)
	if got := d.progress(u); got != before {
		t.Errorf("a queue of %d went from %+v to %+v", len(u.queue), before, got)
	}
	if c := d.pick(prompt("another", 1)); c.FirstToken <= 0 {
		t.Errorf("a first token is expected in %v", c.FirstToken)
	}
}
