package virtual

import (
	"slices"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// A replica that restarts is cold, and what it held is lost without a word.
func TestFC114RestartLosesRequestsAndCache(t *testing.T) {
	sim, w := newSim(t, 1, flat)
	r := simengine.Request{ID: 1, PromptTokens: 64, Blocks: []uint64{1, 2, 3, 4}, OutputTokens: 50}
	submit := func(id uint64) {
		r.ID = id
		if err := sim.Submit(0, r); err != nil {
			t.Errorf("Submit: %v", err)
		}
	}
	w.do = func(e Event) {
		switch e.Kind {
		case arrive:
			submit(e.Arg)
		case other:
			if lost := sim.Restart(0); !slices.Equal(lost, []uint64{1, 2}) {
				t.Errorf("Restart = %v, want 1 and 2 lost", lost)
			}
			submit(3)
		}
	}
	sim.Schedule(Event{0, arrive, 0, 1})
	sim.Schedule(Event{9500 * time.Microsecond, arrive, 0, 2})
	sim.Schedule(Event{9600 * time.Microsecond, other, 0, 0})
	for sim.Run(sim.Now() + time.Second) {
	}
	last := w.log[len(w.log)-1].output
	if last.ID != 3 || !last.Finished || last.CachedTokens != 0 || last.Times.At != 59600*time.Microsecond {
		t.Errorf("last told of %+v, want the cold request 3 to end at 59.6ms", last)
	}
	if got := sim.Stats(0); got.FinishedStop != 1 || got.Aborted != 0 {
		t.Errorf("Stats() = %+v, want one end", got)
	}
}

// Slower from the next step on, asleep and awake again: seen at once by a
// scrape, though nothing had been computed since long before.
func TestEngineChangesOnTheWay(t *testing.T) {
	sim, w := newSim(t, 1, flat)
	ms := time.Millisecond
	w.do = func(e Event) {
		switch sim.Now() {
		case 0:
			if err := sim.Submit(0, simengine.Request{ID: 1, PromptTokens: 10, OutputTokens: 100}); err != nil {
				t.Errorf("Submit: %v", err)
			}
		case 20 * ms:
			if got := sim.Stats(0).GenerationTokens; got != 20 {
				t.Errorf("%d tokens after 20ms, want 20", got)
			}
			if err := sim.SetCost(0, simengine.Cost{Base: 2 * ms}); err != nil {
				t.Errorf("SetCost: %v", err)
			}
		case 61 * ms: // the step that began at 20ms took 1 ms
			if got := sim.Stats(0).GenerationTokens; got != 41 {
				t.Errorf("%d tokens after 61ms, want 41", got)
			}
			if err := sim.Sleep(0, 0, simengine.PauseKeep); err != nil {
				t.Errorf("Sleep: %v", err)
			}
		case 500 * ms:
			if got := sim.Stats(0).GenerationTokens; got != 42 {
				t.Errorf("%d tokens asleep, want 42", got)
			}
			sim.Wake(0)
		}
	}
	for _, at := range []time.Duration{0, 20 * ms, 61 * ms, 500 * ms} {
		sim.Schedule(Event{At: at, Kind: scrape})
	}
	for sim.Run(sim.Now() + 100*ms) {
	}
	if o := w.log[len(w.log)-1].output; !o.Finished || o.Times.At != 616*ms {
		t.Errorf("last told of %+v, want the end at 616ms", o)
	}
	if err := sim.SetCost(0, simengine.Cost{}); err == nil {
		t.Error("SetCost of nothing = nil, want an error")
	}
}

func TestAddRefuses(t *testing.T) {
	sim := New(1, nil)
	if _, err := sim.Add(simengine.Config{Blocks: 1}); err == nil || sim.Len() != 0 {
		t.Errorf("Add of an engine without blocks = %v, %d engines", err, sim.Len())
	}
}

// What repeats costs no memory.
func TestWarmLoadDoesNotAllocate(t *testing.T) {
	w := &counter{}
	w.sim = New(1, w)
	for range 4 {
		if _, err := w.sim.Add(simengine.Config{Blocks: 400}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(40) {
		w.sim.Schedule(Event{At: time.Duration(i) * 7 * time.Millisecond, Kind: arrive, Arg: i})
	}
	w.sim.Run(100 * time.Second)
	before := w.ends
	if n := testing.AllocsPerRun(5, func() { w.sim.Run(w.sim.Now() + 10*time.Second) }); n > 1 {
		t.Errorf("ten seconds of a warm load allocate %v times, want none", n)
	}
	if w.ends < before+1000 {
		t.Errorf("%d requests ended, want many", w.ends-before)
	}
}

// counter keeps forty requests going, each time with new text behind a prefix
// that all share.
type counter struct {
	sim    *Sim
	ends   int
	blocks [40][12]uint64
}

func (c *counter) Event(e Event) {
	b := &c.blocks[e.Arg]
	for i := range b {
		b[i] = uint64(i + 1)
		if i >= 4 {
			b[i] |= uint64(c.ends+1)<<40 | e.Arg<<20
		}
	}
	r := simengine.Request{ID: e.Arg, PromptTokens: 130, OutputTokens: 60, Blocks: b[:8], OutputBlocks: b[8:]}
	if err := c.sim.Submit(int(e.Arg%4), r); err != nil {
		panic(err)
	}
}

func (c *counter) Outputs(_ int, outputs []simengine.Output) {
	for i := range outputs {
		if o := &outputs[i]; o.Finished {
			c.ends++
			c.sim.Schedule(Event{At: c.sim.Now() + time.Millisecond, Kind: arrive, Arg: o.ID})
		}
	}
}
