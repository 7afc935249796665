package simengine

import (
	"testing"
	"time"
)

// When a thousand clients leave at once the engine is empty one step later.
func TestThousandDisconnectsEmptyTheEngineWithinAStep(t *testing.T) {
	e := newEngine(t, Config{MaxNumSeqs: 256, Blocks: 3000})
	for i := range uint64(1000) {
		submit(t, e, 0, prompt(i, int(i), 100, 500))
	}
	for range 10 {
		step(t, e)
	}
	if s := e.Stats(); s.Running != 256 || s.Waiting != 744 {
		t.Fatalf("Stats() = %d running, %d waiting, want 256, 744", s.Running, s.Waiting)
	}
	at, _ := e.Next()
	for i := range uint64(1000) {
		e.Cancel(at-1, i)
	}
	_, out := step(t, e)
	if len(out) != 1000 || out[0].Tokens != 0 || out[0].Reason != ReasonAbort || !out[0].Finished {
		t.Errorf("%d outputs beginning with %+v, want 1000 aborts", len(out), out[0])
	}
	s := e.Stats()
	if s.Running != 0 || s.Waiting != 0 || s.KVUsage != 0 || s.Aborted != 1000 || s.FinishedStop != 0 {
		t.Errorf("Stats() = %+v, want an empty engine and 1000 aborts", s)
	}
	if _, busy := e.Next(); busy {
		t.Error("Next() = busy, want idle")
	}
}

func TestCancelInEachState(t *testing.T) {
	setUp := func(t *testing.T) *Engine {
		e := newEngine(t, Config{MaxNumSeqs: 1, MaxNumBatchedTokens: 64, Cost: Cost{Base: time.Millisecond, RequestOverhead: time.Millisecond}})
		submit(t, e, 0, prompt(1, 1, 100, 5))                    // in prefill after the first step
		submit(t, e, 0, prompt(2, 2, 10, 5))                     // waits
		step(t, e)                                               // begins at 1ms
		submit(t, e, 1500*time.Microsecond, prompt(3, 3, 10, 5)) // is on its way until 2.5ms
		return e
	}
	for name, victim := range map[string]uint64{"running": 1, "waiting": 2, "arriving": 3} {
		t.Run(name, func(t *testing.T) {
			e := setUp(t)
			e.Cancel(1600*time.Microsecond, victim)
			e.Cancel(1700*time.Microsecond, victim) // twice is once
			_, out := step(t, e)
			if len(out) != 1 || out[0].ID != victim || out[0].Reason != ReasonAbort || out[0].Times.At != 2*time.Millisecond {
				t.Errorf("the next step brought %+v, want the abort of %d at 2ms", out, victim)
			}
			last := drain(t, e)
			for id := uint64(1); id <= 3; id++ {
				if _, ran := last[id]; ran == (id == victim) {
					t.Errorf("request %d ran on: %v", id, ran)
				}
			}
			if s := e.Stats(); s.Aborted != 1 || s.FinishedStop != 2 || s.KVUsage != 0 {
				t.Errorf("Stats() = %+v, want one abort and two ends", s)
			}
		})
	}
}

// A client that leaves before its request was seen by an idle engine still
// leaves it clean.
func TestCancelOnTheWayToAnIdleEngine(t *testing.T) {
	e := newEngine(t, Config{Cost: Cost{Base: time.Millisecond, RequestOverhead: 5 * time.Millisecond}})
	submit(t, e, 0, prompt(1, 1, 10, 5))
	e.Cancel(time.Millisecond, 1)
	if at, busy := e.Next(); at != time.Millisecond || !busy {
		t.Errorf("Next() = %v, %v, want 1ms", at, busy)
	}
	if last := drain(t, e); last[1].Reason != ReasonAbort || last[1].Times.Scheduled >= 0 {
		t.Errorf("last output %+v, want an abort of what was never scheduled", last[1])
	}
	if s := e.Stats(); s.Aborted != 1 || s.Steps != 0 {
		t.Errorf("Stats() = %+v, want one abort and no step", s)
	}
}

// A cancel that comes after the last token, or of nobody, changes nothing.
func TestCancelTooLate(t *testing.T) {
	e := newEngine(t, Config{})
	submit(t, e, 0, prompt(1, 1, 10, 1))
	step(t, e)
	e.Cancel(3*time.Millisecond, 1) // told before the step that ends at 1ms is ended
	e.Cancel(3*time.Millisecond, 99)
	last := drain(t, e)
	if last[1].Reason != ReasonStop {
		t.Errorf("last output %+v, want the end that came first", last[1])
	}
	if s := e.Stats(); s.Aborted != 0 || s.FinishedStop != 1 {
		t.Errorf("Stats() = %+v, want one stop", s)
	}
	submit(t, e, 4*time.Millisecond, prompt(1, 1, 10, 1))
	if last := drain(t, e); last[1].Reason != ReasonStop {
		t.Errorf("the next request of that id ended with %+v", last[1])
	}
}
