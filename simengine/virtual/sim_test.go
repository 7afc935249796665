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
