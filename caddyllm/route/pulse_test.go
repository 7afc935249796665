package route

import (
	"sync"
	"testing"
	"time"
)

// A prompt that all must compute goes to the engine whose step ends first, and
// not to the one that has just begun another.
func TestAPromptJoinsTheStepThatEndsFirst(t *testing.T) {
	const step = 40 * time.Millisecond
	d := newDesk(t, 2)
	pulses := map[int]*Pulse{}
	for i := 0; len(pulses) < 2; i++ {
		c := d.pick(prompt("busy", 1, i, 1))
		d.r.FirstByte(d.now, c.Ticket)
		pulses[c.Index] = c.Pulse
	}
	beat := func(i int) { pulses[i].Beat(d.now, step) }
	for range 50 {
		d.now = d.now.Add(step / 4)
		beat(0)
		d.now = d.now.Add(step * 3 / 4)
		beat(1)
	}
	// 0 is 30 ms into its step, 1 has just begun one.
	q := prompt("new", 1)
	terms := d.r.Explain(d.now, q, d.targets)
	if near(terms[0].Step, 0.010) && near(terms[1].Step, 0.040) {
		c := d.pick(q)
		if c.Index != 0 {
			t.Errorf("the prompt goes to %d, whose step ends last", c.Index)
		}
		d.r.FirstByte(d.now.Add(2*step), c.Ticket)
	} else {
		t.Errorf("steps end in %.3f and %.3f s, want 0.010 and 0.040", terms[0].Step, terms[1].Step)
	}
	// Streams that fell silent say nothing of the step.
	d.now = d.now.Add(3 * step)
	for i, term := range d.r.Explain(d.now, q, d.targets) {
		if term.Step != 0 {
			t.Errorf("upstream %d: a step ends in %v s, though none was heard to begin", i, term.Step)
		}
	}
}

func near(got, want float64) bool { return got > want*0.95 && got < want*1.05 }

// One step with a long prefill in it says little of those to come.
func TestPulseTakesTheUsualStep(t *testing.T) {
	p := &Pulse{epoch: time.Unix(0, 0)}
	now := p.epoch
	for i := range 200 {
		gap := 10 * time.Millisecond
		if i%20 == 0 {
			gap = 500 * time.Millisecond
		}
		now = now.Add(gap)
		p.Beat(now, gap)
	}
	if got := p.rest(now.Sub(p.epoch)); got < 0.0095 || got > 0.0105 {
		t.Errorf("a step takes %v s, want about 0.010", got)
	}
}

// Chunks that are read together, or end a stream, are of one step.
func TestChunksOfOneStepAreNoStep(t *testing.T) {
	p := &Pulse{epoch: time.Unix(0, 0)}
	now := p.epoch
	for range 300 {
		for _, gap := range []time.Duration{20 * time.Millisecond, 50 * time.Microsecond, 0} {
			now = now.Add(gap)
			p.Beat(now, gap)
		}
	}
	if _, step := p.heard(); !near(float64(step), float64(20*time.Millisecond)) {
		t.Errorf("a step takes %v, want 20ms", step)
	}
}

// Beats come from all streams at once, and from none.
func TestPulseIsSafeForConcurrentUse(t *testing.T) {
	var none *Pulse
	none.Beat(time.Now(), time.Second)
	p := &Pulse{epoch: time.Now()}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				p.Beat(time.Now(), 5*time.Millisecond)
			}
		})
	}
	all.Wait()
	if !near(float64(p.step.Load()), float64(5*time.Millisecond)) {
		t.Errorf("a step takes %v", time.Duration(p.step.Load()))
	}
	if got := testing.AllocsPerRun(100, func() { p.Beat(p.epoch, time.Second) }); got != 0 {
		t.Errorf("a beat allocates %v times", got)
	}
}
