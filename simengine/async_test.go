package simengine

import (
	"testing"
	"time"
)

// With asynchronous scheduling a step is composed while the one before it is
// computed: who arrives during a step is seen at its end, and is computed after
// the step that was composed without it.
func TestAsyncSchedulingSeesArrivalsOneStepLater(t *testing.T) {
	e := newEngine(t, Config{AsyncScheduling: true})
	submit(t, e, 0, prompt(1, 1, 10, 10))
	step(t, e) // the first begins at 0: nothing was there to compose it beside
	submit(t, e, 500*time.Microsecond, prompt(2, 2, 10, 1))
	last := drain(t, e)
	if x := last[1].Times; x.Scheduled != 0 || x.First != time.Millisecond || x.At != 10*time.Millisecond {
		t.Errorf("first request: %+v, want tokens at each of 1ms to 10ms", x)
	}
	if x := last[2].Times; x.Scheduled != time.Millisecond || x.First != 3*time.Millisecond {
		t.Errorf("second request: %+v, want it scheduled at 1ms, its token at 3ms", x)
	}
}

// What a request held when it finished can't be given to the step that was
// composed before that.
func TestAsyncSchedulingFreesBlocksOneStepLater(t *testing.T) {
	for async, want := range map[bool]time.Duration{false: 2 * time.Millisecond, true: 3 * time.Millisecond} {
		e := newEngine(t, Config{Blocks: 11, AsyncScheduling: async})
		// The first holds 6 of 10 blocks, the third needs 6.
		submit(t, e, 0, prompt(1, 1, 90, 2), prompt(2, 2, 10, 5), prompt(3, 3, 90, 1))
		step(t, e)
		step(t, e)
		if _, out := step(t, e); len(out) != 2 || !out[0].Finished {
			t.Fatalf("async %v: outputs at 2ms are %+v, want the first to finish", async, out)
		}
		if last := drain(t, e); last[3].Times.First != want+time.Millisecond {
			t.Errorf("async %v: third request has its token at %v, want %v", async, last[3].Times.First, want+time.Millisecond)
		}
	}
}

// An engine whose last request finished begins at once with what had arrived
// meanwhile.
func TestAsyncSchedulingDoesNotIdleBesideWork(t *testing.T) {
	e := newEngine(t, Config{Blocks: 8, AsyncScheduling: true})
	submit(t, e, 0, prompt(1, 1, 90, 1))
	step(t, e)
	submit(t, e, 500*time.Microsecond, prompt(2, 2, 90, 1))
	if last := drain(t, e); last[2].Times.First != 2*time.Millisecond {
		t.Errorf("second request has its token at %v, want 2ms", last[2].Times.First)
	}
}

// A cancel during a step is seen at its end, and the step then begun was
// composed with the request in it.
func TestAsyncSchedulingSeesCancelsOneStepLater(t *testing.T) {
	e := newEngine(t, Config{AsyncScheduling: true})
	submit(t, e, 0, prompt(1, 1, 10, 10))
	step(t, e)
	e.Cancel(500*time.Microsecond, 1)
	step(t, e)
	if s := e.Stats(); s.Running != 1 {
		t.Errorf("%d run at 1ms, want 1", s.Running)
	}
	at, out := step(t, e)
	if len(out) != 1 || out[0].Reason != ReasonAbort || at != 2*time.Millisecond || e.Stats().Running != 0 {
		t.Errorf("outputs at %v: %+v with %d running, want the abort at 2ms and nobody", at, out, e.Stats().Running)
	}
}

// What is compiled at first use delays the first step, and the second is
// composed only when that is done.
func TestFirstStepIsLonger(t *testing.T) {
	for _, async := range []bool{false, true} {
		e := newEngine(t, Config{AsyncScheduling: async, Cost: Cost{Base: time.Millisecond, FirstStep: 3 * time.Millisecond}})
		submit(t, e, 0, prompt(1, 1, 10, 10))
		step(t, e)
		submit(t, e, 2*time.Millisecond, prompt(2, 2, 10, 1))
		last := drain(t, e)
		if x := last[1].Times; x.First != 4*time.Millisecond || x.At != 13*time.Millisecond {
			t.Errorf("async %v: first request: %+v, want tokens at each of 4ms to 13ms", async, x)
		}
		if x := last[2].Times; x.First != 5*time.Millisecond {
			t.Errorf("async %v: second request has its token at %v, want 5ms", async, x.First)
		}
	}
}
