package simengine

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"
	"time"
)

// moment is what Stats said from a time on.
type moment struct {
	at    time.Duration
	stats Stats
}

// stepped is the life of an engine under Step: its first and last outputs, with
// all tokens since the one before, and its Stats.
func (tr traffic) stepped(t testing.TB) (told []Output, moments []moment) {
	t.Helper()
	e := newEngine(t, tr.config)
	tokens := make(map[uint64]int)
	events := tr.events
	for {
		at, busy := e.Next()
		for len(events) > 0 && (!busy || events[0].at <= at) {
			tr.hand(t, e, events[0])
			events = events[1:]
			at, busy = e.Next()
		}
		if !busy {
			return told, moments
		}
		for _, o := range e.Step(at) {
			tokens[o.ID] += o.Tokens
			if o.First || o.Finished {
				o.Tokens = tokens[o.ID]
				tokens[o.ID] = 0
				told = append(told, o)
			}
		}
		moments = append(moments, moment{at, e.Stats()})
	}
}

func (tr traffic) hand(t testing.TB, e *Engine, ev event) {
	t.Helper()
	if ev.submit != nil {
		submit(t, e, ev.at, *ev.submit)
	} else {
		e.Cancel(ev.at, ev.cancel)
	}
}

// advanced is the same life under Advance, looked at now and then, and checks
// Stats and Due on the way.
func (tr traffic) advanced(t testing.TB, random *rand.Rand, moments []moment) (told []Output, steady int, err error) {
	t.Helper()
	e, calls := newEngine(t, tr.config), 0
	reach := func(until time.Duration) error {
		for {
			due, busy := e.Due()
			out := e.Advance(until)
			if e.steady.on {
				steady++
			}
			// The check walks the whole pool; what breaks it stays broken.
			if calls++; calls%4 == 0 {
				if err := e.steadyInvariants(); err != nil {
					return fmt.Errorf("at %v: %w", until, err)
				}
			}
			if len(out) == 0 {
				break
			}
			if !busy || out[0].Times.At < due {
				return fmt.Errorf("an output at %v, Due was %v, %v", out[0].Times.At, due, busy)
			}
			told = append(told, out...)
			if random.IntN(50) == 0 && out[0].Times.At < until {
				if at, busy := e.Next(); busy && at <= until { // now and then a step by hand
					for _, o := range e.Step(at) {
						if o.First || o.Finished {
							told = append(told, o)
						}
					}
				}
			}
		}
		var want Stats
		if i := sort.Search(len(moments), func(i int) bool { return moments[i].at > until }); i > 0 {
			want = moments[i-1].stats
		}
		if got := e.Stats(); got != want {
			return fmt.Errorf("Stats() at %v = %+v, want %+v", until, got, want)
		}
		return nil
	}
	for i, ev := range tr.events {
		if i > 0 && random.IntN(3) == 0 {
			if gap := ev.at - tr.events[i-1].at; gap > 0 {
				if err := reach(tr.events[i-1].at + time.Duration(random.Int64N(int64(gap)))); err != nil {
					return told, steady, err
				}
			}
		}
		tr.hand(t, e, ev)
	}
	last := tr.events[len(tr.events)-1].at // may be the cancellation of what ended before
	end := max(moments[len(moments)-1].at, last)
	for at := last; at < end; at += 1 + time.Duration(random.Int64N(int64(20*time.Millisecond))) {
		if err := reach(at); err != nil {
			return told, steady, err
		}
	}
	err = reach(end)
	if _, busy := e.Due(); busy && err == nil {
		err = fmt.Errorf("Due() = busy at the end")
	}
	return told, steady, err
}

// checkAdvance compares the two lives.
func (tr traffic) checkAdvance(t testing.TB, random *rand.Rand) (steady int, err error) {
	want, moments := tr.stepped(t)
	got, steady, err := tr.advanced(t, random, moments)
	for i := range min(len(got), len(want)) {
		// Outputs of steps by hand tell fewer tokens.
		if want[i].Tokens = got[i].Tokens; got[i] != want[i] {
			return steady, fmt.Errorf("output %d = %+v, want %+v", i, got[i], want[i])
		}
	}
	if err == nil && len(got) != len(want) {
		err = fmt.Errorf("%d outputs, want %d", len(got), len(want))
	}
	return steady, err
}

// Advance sums up what Step does one by one: to the nanosecond, in every count
// that anybody can see, wherever one stops to look.
func TestAdvanceIsStepping(t *testing.T) {
	steady := make(map[bool]int)
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 7))
		tr := randomTraffic(random)
		n, err := tr.checkAdvance(t, random)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		steady[tr.config.AsyncScheduling] += n
	}
	if steady[false] == 0 || steady[true] == 0 {
		t.Errorf("batches were steady %v times, by asynchronous scheduling: no trial", steady)
	}
}

func FuzzAdvance(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		random := rand.New(rand.NewPCG(a, b))
		if _, err := randomTraffic(random).checkAdvance(t, random); err != nil {
			t.Fatal(err)
		}
	})
}
