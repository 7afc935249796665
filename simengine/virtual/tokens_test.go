package virtual

import (
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Who asks for all tokens is told of the same first ones and ends as who
// doesn't, with the tokens in between at the steps' own times.
func TestToldOfAllTokens(t *testing.T) {
	run := func(each bool) *scribe {
		sim, w := newSim(t, 2, small)
		if each {
			sim.TellTokens()
		}
		w.do = func(e Event) {
			r := simengine.Request{ID: e.Arg, PromptTokens: 100, OutputTokens: int(10 + e.Arg)}
			if err := sim.Submit(int(e.Actor), r); err != nil {
				t.Errorf("Submit: %v", err)
			}
		}
		w.look = func(engine int, _ simengine.Output) { sim.Stats(engine) } // looking changes nothing
		for i := range uint64(30) {
			sim.Schedule(Event{time.Duration(i) * 9 * time.Millisecond, arrive, int32(i % 2), i + 1})
		}
		for sim.Run(sim.Now() + 30*time.Millisecond) {
		}
		return w
	}
	few, all := run(false), run(true)
	tokens := map[uint64]int{}
	i := 0
	for _, x := range all.log {
		if o := x.output; o.ID != 0 && !o.First && !o.Finished {
			if o.Tokens != 1 || o.Times.At != x.at {
				t.Fatalf("told %+v at %v, want one token then", o, x.at)
			}
			tokens[o.ID]++
			continue
		}
		want := few.log[i]
		if i++; x.output.Finished && !x.output.First {
			want.output.Tokens = 1 // the others were told
			tokens[x.output.ID] += 2
		}
		if x != want {
			t.Fatalf("told %+v, without tokens %+v", x, want)
		}
	}
	if i != len(few.log) || len(tokens) != 30 {
		t.Fatalf("told of %d things and %d requests, want %d and 30", i, len(tokens), len(few.log))
	}
	for id, n := range tokens {
		if n != int(10+id) {
			t.Errorf("request %d: told of %d tokens, want %d", id, n, 10+id)
		}
	}
}

// Stop leaves what is due at the same moment for the next Run.
func TestStopEndsRunBetweenTwoThings(t *testing.T) {
	sim, w := newSim(t, 0, flat)
	w.do = func(e Event) {
		if e.Arg == 2 {
			sim.Stop()
		}
	}
	for i := range uint64(4) {
		sim.Schedule(Event{At: time.Second, Arg: i + 1})
	}
	if more := sim.Run(time.Minute); !more || len(w.log) != 2 || sim.Now() != time.Second {
		t.Errorf("Run = %v after %d events at %v, want true after 2 at 1s", more, len(w.log), sim.Now())
	}
	if more := sim.Run(time.Minute); more || len(w.log) != 4 || sim.Now() != time.Minute {
		t.Errorf("Run = %v after %d events at %v, want false after 4 at 1m", more, len(w.log), sim.Now())
	}
}
