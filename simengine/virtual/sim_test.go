package virtual

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Kinds of the tests' events.
const (
	arrive Kind = 1
	leave  Kind = 2
	other  Kind = 3
	scrape Kind = 200
)

// told is one thing that a handler was told.
type told struct {
	at     time.Duration
	event  Event
	engine int
	output simengine.Output
	stats  simengine.Stats
}

// scribe writes down what it is told and does what the test says.
type scribe struct {
	sim  *Sim
	log  []told
	do   func(Event)
	look func(engine int, o simengine.Output)
	kv   []simengine.KVEvent
}

func (s *scribe) Event(e Event) {
	s.log = append(s.log, told{at: s.sim.Now(), event: e})
	if s.do != nil {
		s.do(e)
	}
}

func (s *scribe) Outputs(engine int, outputs []simengine.Output) {
	for _, o := range outputs {
		s.log = append(s.log, told{at: s.sim.Now(), engine: engine, output: o})
		if s.look != nil {
			s.look(engine, o)
		}
	}
}

func (s *scribe) KVEvents(_ int, events []simengine.KVEvent) { s.kv = append(s.kv, events...) }

func newSim(t *testing.T, engines int, c simengine.Config) (*Sim, *scribe) {
	t.Helper()
	w := &scribe{}
	w.sim = New(1, w)
	for range engines {
		if _, err := w.sim.Add(c); err != nil {
			t.Fatalf("Add: %v", err)
		}
	}
	return w.sim, w
}

// flat makes every step a millisecond.
var flat = simengine.Config{Cost: simengine.Cost{Base: time.Millisecond}}

func TestEventsOfOneTimeGoByKindThenByOrder(t *testing.T) {
	sim, w := newSim(t, 2, flat)
	w.do = func(e Event) {
		if e.Kind == arrive {
			if err := sim.Submit(int(e.Actor), simengine.Request{ID: e.Arg, PromptTokens: 10, OutputTokens: 1}); err != nil {
				t.Errorf("Submit: %v", err)
			}
		}
	}
	ms := time.Millisecond
	for _, e := range []Event{
		{ms, scrape, 0, 1}, {ms, arrive, 1, 8}, {ms, other, 0, 3}, {0, arrive, 1, 6}, {ms, other, 0, 2}, {0, arrive, 0, 7},
	} {
		sim.Schedule(e)
	}
	for sim.Run(sim.Now() + 10*ms) {
	}
	var got []string
	for _, x := range w.log {
		if x.output.ID != 0 {
			got = append(got, fmt.Sprintf("%v engine %d: %d", x.at, x.engine, x.output.ID))
		} else {
			got = append(got, fmt.Sprintf("%v kind %d: %d", x.at, x.event.Kind, x.event.Arg))
		}
	}
	want := []string{
		"0s kind 1: 6", "0s kind 1: 7",
		"1ms kind 1: 8", "1ms kind 3: 3", "1ms kind 3: 2",
		"1ms engine 0: 7", "1ms engine 1: 6", "1ms kind 200: 1",
		"2ms engine 1: 8", // came at the very end of a step, and so is in the next
	}
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if sim.Now() != 10*ms {
		t.Errorf("Now() = %v, want 10ms", sim.Now())
	}
}

// load is a random life of three engines, with scrapes and cancels, in which
// what is submitted depends on what was told.
func load(t *testing.T, seed uint64, c simengine.Config) *scribe {
	t.Helper()
	w := &scribe{}
	sim := New(seed, w)
	w.sim = sim
	for range 3 {
		if _, err := sim.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	random := sim.Random("load")
	left, id := 80, uint64(0)
	w.do = func(e Event) {
		switch e.Kind {
		case arrive:
			id++
			prompt := 1 + random.IntN(400)
			blocks := make([]uint64, prompt/16)
			text := random.Uint64N(3)
			for i := range blocks {
				blocks[i] = text<<32 | uint64(i+1)
			}
			engine := random.IntN(3)
			r := simengine.Request{ID: id, PromptTokens: prompt, Blocks: blocks, OutputTokens: 1 + random.IntN(80)}
			if err := sim.Submit(engine, r); err != nil {
				t.Errorf("Submit: %v", err)
			}
			if random.IntN(6) == 0 {
				sim.Schedule(Event{sim.Now() + time.Duration(random.Int64N(3e8)), leave, int32(engine), id})
			}
			if left--; left > 0 && left%4 != 0 {
				sim.Schedule(Event{At: sim.Now() + time.Duration(random.ExpFloat64()*1e7), Kind: arrive})
			}
		case leave:
			sim.Cancel(int(e.Actor), e.Arg)
		case scrape:
			open := 0
			for i := range 3 {
				stats := sim.Stats(i)
				open += stats.Running + stats.Waiting
				w.log = append(w.log, told{at: sim.Now(), engine: i, stats: stats})
			}
			if left > 0 {
				if open == 0 {
					sim.Schedule(Event{At: sim.Now(), Kind: arrive})
				}
				sim.Schedule(Event{At: sim.Now() + 13*time.Millisecond, Kind: scrape})
			}
		}
	}
	w.look = func(engine int, o simengine.Output) {
		sim.Stats(random.IntN(3)) // looking changes nothing
		if o.Finished && left > 0 && random.IntN(3) == 0 {
			sim.Schedule(Event{At: sim.Now() + time.Millisecond, Kind: arrive})
		}
	}
	sim.Schedule(Event{Kind: arrive})
	sim.Schedule(Event{Kind: scrape})
	for sim.Run(sim.Now() + 50*time.Millisecond) {
	}
	return w
}

// small is an engine that is soon full, so that requests wait and are preempted.
var small = simengine.Config{
	Blocks: 60, MaxNumSeqs: 8, MaxNumBatchedTokens: 256,
	Cost: simengine.Cost{Base: 6300 * time.Microsecond, PrefillToken: 16e-6, DecodeSeq: 12.4e-6, ContextToken: 41.5e-9, AttentionTerm: 1.56e-9, RequestOverhead: 5 * time.Millisecond},
}

func TestRunsOfOneSeedAreTheSame(t *testing.T) {
	for seed := range uint64(10) {
		a, b := load(t, seed, small), load(t, seed, small)
		if !reflect.DeepEqual(a.log, b.log) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
		if c := load(t, seed+100, small); reflect.DeepEqual(a.log, c.log) {
			t.Errorf("seeds %d and %d make the same run", seed, seed+100)
		}
		for i := 1; i < len(a.log); i++ {
			if a.log[i].at < a.log[i-1].at {
				t.Fatalf("seed %d: told of %v after %v", seed, a.log[i].at, a.log[i-1].at)
			}
		}
	}
}

// With KV events on an engine is stepped one by one; what is told is the same.
func TestToldIsWhatStepsBring(t *testing.T) {
	stepwise := small
	stepwise.KVEvents = true
	for seed := range uint64(20) {
		a, b := load(t, seed, small), load(t, seed, stepwise)
		if len(b.kv) == 0 {
			t.Fatalf("seed %d: no KV events", seed)
		}
		for i := range min(len(a.log), len(b.log)) {
			if a.log[i] != b.log[i] {
				t.Fatalf("seed %d: told %+v, by steps %+v", seed, a.log[i], b.log[i])
			}
		}
		if len(a.log) != len(b.log) {
			t.Fatalf("seed %d: told %d things, by steps %d", seed, len(a.log), len(b.log))
		}
	}
}

func TestRandomStreamsDependOnSeedAndActorAlone(t *testing.T) {
	sim := New(1, nil)
	a := sim.Random("a").Uint64()
	if sim.Random("b").Uint64() == a || New(2, nil).Random("a").Uint64() == a {
		t.Error("two actors or two seeds share a stream")
	}
	if sim.Random("a").Uint64() != a {
		t.Error("a stream isn't the same when it begins anew")
	}
}
