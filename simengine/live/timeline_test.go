package live

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/virtual"
)

// arrival is a request and its time; cancelled, if not 0, is when its client
// leaves.
type arrival struct {
	at, cancelled time.Duration
	request       simengine.Request
}

func arrivals(seed uint64) []arrival {
	random := rand.New(rand.NewPCG(seed, 4))
	var list []arrival
	var now time.Duration
	for id := uint64(1); id <= 60; id++ {
		now += time.Duration(random.ExpFloat64()*30e6) + 1
		prompt := 1 + random.IntN(400)
		blocks := make([]uint64, prompt/16)
		text := random.Uint64N(3)
		for i := range blocks {
			blocks[i] = text<<32 | uint64(i+1)
		}
		a := arrival{at: now, request: simengine.Request{ID: id, PromptTokens: prompt, Blocks: blocks, OutputTokens: 1 + random.IntN(80)}}
		if random.IntN(4) == 0 {
			a.cancelled = now + 1 + time.Duration(random.Int64N(300e6))
		}
		list = append(list, a)
	}
	return list
}

// plain is the plain loop: what the engine does without any clock.
func plain(t *testing.T, c simengine.Config, list []arrival) ([]simengine.Output, simengine.Stats) {
	t.Helper()
	e := newEngine(t, c)
	type event struct {
		at time.Duration
		do func()
	}
	var events []event
	for _, a := range list {
		events = append(events, event{a.at, func() {
			if err := e.Submit(a.at, a.request); err != nil {
				t.Errorf("Submit: %v", err)
			}
		}})
		if a.cancelled > 0 {
			events = append(events, event{a.cancelled, func() { e.Cancel(a.cancelled, a.request.ID) }})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	var outputs []simengine.Output
	for {
		at, busy := e.Next()
		switch {
		case len(events) > 0 && (!busy || events[0].at <= at):
			events[0].do()
			events = events[1:]
		case busy:
			outputs = append(outputs, e.Step(at)...)
		default:
			return outputs, e.Stats()
		}
	}
}

// lived is what a driver on the wall clock does.
func lived(t *testing.T, list []arrival) (got []simengine.Output, stats simengine.Stats) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := start(t, small(), Options{Observe: func(o []simengine.Output) { got = append(got, o...) }})
		for _, a := range list {
			time.Sleep(a.at - d.Now())
			ctx, cancel := context.WithCancel(t.Context())
			if a.cancelled > 0 {
				time.AfterFunc(a.cancelled-a.at, cancel)
			}
			s := generate(t, d, ctx, a.request)
			go func() { read(s); cancel() }()
		}
		time.Sleep(time.Hour)
		stats = d.Stats()
	})
	return got, stats
}

// At the speed of life the driver does what the plain loop does, event for
// event, to the nanosecond.
func TestTimelineIsThatOfThePlainLoop(t *testing.T) {
	for seed := range uint64(20) {
		list := arrivals(seed)
		want, wantStats := plain(t, small(), list)
		got, stats := lived(t, list)
		if !reflect.DeepEqual(got, want) || stats != wantStats {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("seed %d: output %d = %+v, want %+v", seed, i, got[i], want[i])
				}
			}
			t.Fatalf("seed %d: %d outputs, %+v, want %d, %+v", seed, len(got), stats, len(want), wantStats)
		}
		if stats.Preemptions+stats.Aborted == 0 {
			t.Errorf("seed %d: nothing was preempted or cancelled", seed)
		}
	}
}

// merged are the outputs that package virtual tells: first tokens and ends, with
// all tokens since the one before.
func merged(all []simengine.Output) (told []simengine.Output) {
	tokens := make(map[uint64]int)
	for _, o := range all {
		tokens[o.ID] += o.Tokens
		if o.First || o.Finished {
			o.Tokens, tokens[o.ID] = tokens[o.ID], 0
			told = append(told, o)
		}
	}
	return told
}

// replay is the same load on a virtual clock.
type replay struct {
	t    *testing.T
	sim  *virtual.Sim
	list []arrival
	told []simengine.Output
}

func (r *replay) Event(e virtual.Event) {
	a := r.list[e.Arg]
	if e.Actor == 1 {
		r.sim.Cancel(0, a.request.ID)
	} else if err := r.sim.Submit(0, a.request); err != nil {
		r.t.Errorf("Submit: %v", err)
	}
}

func (r *replay) Outputs(_ int, o []simengine.Output) { r.told = append(r.told, o...) }

// A client that talks to the wall clock and one that talks to a virtual one see
// the same, event for event, to the nanosecond.
func TestTimelineIsThatOfVirtual(t *testing.T) {
	for seed := range uint64(20) {
		list := arrivals(seed)
		r := &replay{t: t, list: list}
		r.sim = virtual.New(seed, r)
		if _, err := r.sim.Add(small()); err != nil {
			t.Fatal(err)
		}
		for i, a := range list {
			r.sim.Schedule(virtual.Event{At: a.at, Arg: uint64(i)})
			if a.cancelled > 0 {
				r.sim.Schedule(virtual.Event{At: a.cancelled, Actor: 1, Arg: uint64(i)})
			}
		}
		r.sim.Run(time.Hour)
		got, stats := lived(t, list)
		if got = merged(got); !reflect.DeepEqual(got, r.told) || stats != r.sim.Stats(0) {
			for i := range min(len(got), len(r.told)) {
				if got[i] != r.told[i] {
					t.Fatalf("seed %d: output %d = %+v, virtual %+v", seed, i, got[i], r.told[i])
				}
			}
			t.Fatalf("seed %d: %d outputs, %+v, virtual %d, %+v", seed, len(got), stats, len(r.told), r.sim.Stats(0))
		}
	}
}

// Fast, slowed down and paused on the way: seen from the engine's clock nothing
// is different.
func TestTimelineDoesNotDependOnTheClocksRate(t *testing.T) {
	list := arrivals(1)
	var got []simengine.Output
	begun := make(map[uint64]time.Duration)
	synctest.Test(t, func(t *testing.T) {
		d := start(t, small(), Options{Speed: 1000, Observe: func(o []simengine.Output) { got = append(got, o...) }})
		for i, a := range list {
			switch i {
			case 20:
				d.SlowBy(7.3)
			case 30:
				d.Pause()
				time.Sleep(time.Minute)
				d.Resume()
			case 40:
				d.SlowBy(0)
			}
			time.Sleep((a.at - d.Now()) / 1000)
			begun[a.request.ID] = d.Now()
			s := generate(t, d, t.Context(), a.request)
			go read(s)
		}
		time.Sleep(time.Hour)
	})
	for i := range list {
		list[i].at, list[i].cancelled = begun[list[i].request.ID], 0
	}
	want, _ := plain(t, small(), list)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%d outputs differ from the %d of the plain loop", len(got), len(want))
	}
}
