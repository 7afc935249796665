package virtual

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// foretold is a random life of five engines of which all is known beforehand:
// arrivals are told up to 100 ms early, some requests are cancelled, engines are
// scraped, slowed, put to sleep and restarted by events. Those of kinds below
// and above Engines fall on the very ends of steps too, as steps take whole
// milliseconds.
func foretold(t *testing.T, seed uint64, c simengine.Config, ahead bool) *scribe {
	t.Helper()
	const engines = 5
	w := &scribe{}
	sim := New(seed, w)
	w.sim = sim
	if ahead {
		sim.RunAhead()
	}
	for range engines {
		if _, err := sim.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	random := sim.Random("load")
	id, left := uint64(0), 12
	early := func(until time.Duration) {
		at := sim.Now()
		for {
			if at += time.Duration(random.IntN(8)) * time.Millisecond; at > until {
				return
			}
			id++
			prompt := 1 + random.IntN(400)
			blocks := make([]uint64, prompt/16)
			text := random.Uint64N(3)
			for i := range blocks {
				blocks[i] = text<<32 | uint64(i+1)
			}
			engine := random.IntN(engines)
			r := simengine.Request{ID: id, PromptTokens: prompt, Blocks: blocks, OutputTokens: 1 + random.IntN(80)}
			if err := sim.SubmitAt(engine, at, r); err != nil {
				t.Errorf("SubmitAt: %v", err)
			}
			if random.IntN(6) == 0 {
				// May be before it has arrived.
				sim.Schedule(Event{sim.Now() + time.Duration(random.IntN(300))*time.Millisecond, leave, int32(engine), id})
			}
		}
	}
	w.do = func(e Event) {
		engine := int(e.Actor)
		switch e.Kind {
		case arrive:
			early(sim.Now() + 100*time.Millisecond)
			if left--; left > 0 {
				sim.Schedule(Event{At: sim.Now() + 100*time.Millisecond, Kind: arrive})
			}
		case leave:
			sim.Cancel(engine, e.Arg)
		case scrape:
			for i := range engines {
				w.log = append(w.log, told{at: sim.Now(), engine: i, stats: sim.Stats(i)})
			}
		case other:
			switch e.Arg {
			case 0:
				slower := c.Cost
				slower.Base *= 2
				if err := sim.SetCost(engine, slower); err != nil {
					t.Errorf("SetCost: %v", err)
				}
			case 1:
				if err := sim.Sleep(engine, 0, simengine.PauseAbort); err != nil {
					t.Errorf("Sleep: %v", err)
				}
				sim.Schedule(Event{sim.Now() + 40*time.Millisecond, other, e.Actor, 2})
			case 2:
				sim.Wake(engine)
			case 3:
				sim.Restart(engine)
			}
		}
	}
	sim.Schedule(Event{Kind: arrive})
	for i := range 80 {
		sim.Schedule(Event{At: time.Duration(i*17) * time.Millisecond, Kind: scrape})
	}
	for i := range 8 {
		sim.Schedule(Event{time.Duration(random.IntN(1200)) * time.Millisecond, other, int32(random.IntN(engines)), []uint64{0, 1, 3}[i%3]})
	}
	for sim.Run(sim.Now() + 50*time.Millisecond) {
	}
	return w
}

// Running ahead is told apart from strict order by its speed alone.
func TestRunningAheadChangesNothing(t *testing.T) {
	coarse := small
	coarse.Cost = simengine.Cost{Base: 6 * time.Millisecond, DecodeSeq: 1e-3, RequestOverhead: 5 * time.Millisecond}
	async := small
	async.AsyncScheduling = true
	events := coarse
	events.KVEvents = true
	for name, c := range map[string]simengine.Config{"fine": small, "coarse": coarse, "async": async, "kv events": events} {
		for seed := range uint64(10) {
			a, b := foretold(t, seed, c, false), foretold(t, seed, c, true)
			for i := range min(len(a.log), len(b.log)) {
				if a.log[i] != b.log[i] {
					t.Fatalf("%s, seed %d: told %+v, ahead %+v", name, seed, a.log[i], b.log[i])
				}
			}
			if len(a.log) != len(b.log) || !slices.Equal(a.kv, b.kv) {
				t.Fatalf("%s, seed %d: told %d things and %d KV events, ahead %d and %d", name, seed, len(a.log), len(a.kv), len(b.log), len(b.kv))
			}
			ends, aborts := 0, 0
			for _, x := range a.log {
				switch {
				case x.output.Reason == simengine.ReasonAbort:
					aborts++
				case x.output.Finished:
					ends++
				}
			}
			if ends < 50 || aborts < 5 || c.KVEvents && len(a.kv) == 0 {
				t.Fatalf("%s, seed %d: %d ends, %d aborts, %d KV events: too little happens", name, seed, ends, aborts, len(a.kv))
			}
		}
	}
}

// A handler that acts on what it is told can't have engines run ahead of it, and
// hears so at once instead of getting something else than in strict order.
func TestActingWhileEnginesRunAheadPanics(t *testing.T) {
	for name, act := range map[string]func(*Sim){
		"Submit":   func(s *Sim) { _ = s.Submit(0, simengine.Request{ID: 9, PromptTokens: 1, OutputTokens: 1}) },
		"Cancel":   func(s *Sim) { s.Cancel(0, 1) },
		"Schedule": func(s *Sim) { s.Schedule(Event{At: time.Second}) },
		"Stats":    func(s *Sim) { s.Stats(0) },
		"Restart":  func(s *Sim) { s.Restart(0) },
		"Stop":     func(s *Sim) { s.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			sim, w := newSim(t, 1, flat)
			sim.RunAhead()
			w.look = func(int, simengine.Output) { act(sim) }
			if err := sim.SubmitAt(0, time.Millisecond, simengine.Request{ID: 1, PromptTokens: 10, OutputTokens: 5}); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if fmt.Sprint(recover()) == "<nil>" {
					t.Error("nothing said")
				}
			}()
			sim.Run(time.Second)
		})
	}
}

// Two requests told beforehand arrive at their own times.
func TestSubmitAtArrivesAtItsTime(t *testing.T) {
	sim, w := newSim(t, 1, flat)
	for id := range uint64(2) {
		r := simengine.Request{ID: id + 1, PromptTokens: 10, OutputTokens: 1}
		if err := sim.SubmitAt(0, time.Duration(id)*7500*time.Microsecond, r); err != nil {
			t.Fatal(err)
		}
	}
	sim.Run(time.Second)
	if len(w.log) != 2 || w.log[0].at != time.Millisecond || w.log[1].at != 8500*time.Microsecond {
		t.Errorf("told %+v, want tokens at 1 and 8.5 ms", w.log)
	}
}
