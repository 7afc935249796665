package simengine

import (
	"errors"
	"testing"
	"time"
)

// What arrives during a step is in no gauge and no batch before it has ended.
func TestArrivalDuringAStepIsSeenAtItsEnd(t *testing.T) {
	e := newEngine(t, Config{})
	submit(t, e, 0, prompt(1, 1, 10, 3))
	step(t, e)
	submit(t, e, 500*time.Microsecond, prompt(2, 2, 10, 3))
	if out := e.Step(900 * time.Microsecond); out != nil {
		t.Errorf("Step before its time = %v, want nothing", out)
	}
	at, out := step(t, e)
	if at != time.Millisecond || len(out) != 1 || out[0].ID != 1 {
		t.Errorf("first step ended at %v with %+v", at, out)
	}
	if s := e.Stats(); s.Running != 1 || s.Waiting != 0 {
		t.Errorf("Stats() at the end of the first step = %d running, %d waiting, want 1, 0", s.Running, s.Waiting)
	}
	_, out = step(t, e)
	if len(out) != 2 || out[1].Times.Scheduled != time.Millisecond || out[1].Times.First != 2*time.Millisecond {
		t.Errorf("second step brought %+v, want a second request, scheduled at 1ms", out)
	}
	if s := e.Stats(); s.Running != 2 {
		t.Errorf("Stats() at the end of the second step = %d running, want 2", s.Running)
	}
}

func TestRequestOverheadDelaysEachRequestByItself(t *testing.T) {
	e := newEngine(t, Config{Cost: Cost{Base: time.Millisecond, RequestOverhead: 5 * time.Millisecond}})
	submit(t, e, 0, prompt(1, 1, 10, 1), prompt(2, 2, 10, 1))
	if at, busy := e.Next(); at != 5*time.Millisecond || !busy {
		t.Errorf("Next() = %v, %v, want 5ms", at, busy)
	}
	for id, o := range drain(t, e) {
		if o.Times.Queued != 5*time.Millisecond || o.Times.First != 6*time.Millisecond || o.Times.Previous >= 0 {
			t.Errorf("request %d: times %+v", id, o.Times)
		}
	}
}

func TestFinishReasonsAndTokenCounts(t *testing.T) {
	e := newEngine(t, Config{MaxModelLen: 100})
	stop, length, cut := prompt(1, 1, 10, 5), prompt(2, 2, 10, 7), prompt(3, 3, 90, 500)
	length.Finish = ReasonLength
	submit(t, e, 0, stop, length, cut)
	last := drain(t, e)
	for id, want := range map[uint64]struct {
		tokens int
		reason string
	}{1: {5, ReasonStop}, 2: {7, ReasonLength}, 3: {10, ReasonLength}} {
		if o := last[id]; o.GeneratedTokens != want.tokens || o.Reason != want.reason || !o.Finished {
			t.Errorf("request %d ended with %d tokens, %q, want %d, %q", id, o.GeneratedTokens, o.Reason, want.tokens, want.reason)
		}
	}
	s := e.Stats()
	if s.FinishedStop != 1 || s.FinishedLength != 2 || s.GenerationTokens != 22 || s.PromptTokens != 110 || s.Running != 0 || s.KVUsage != 0 {
		t.Errorf("Stats() = %+v", s)
	}
	if got := s.IterationTokens.Sum; got != 132 {
		t.Errorf("IterationTokens.Sum = %v, want prompt and generated tokens, 132", got)
	}
	submit(t, e, time.Second, prompt(4, 3, 90, 1)) // 80 of them are cached
	drain(t, e)
	if all, computed := e.Stats().IterationTokens.Sum, e.Stats().IterationComputed.Sum; all != 132+91 || computed != 132+11 {
		t.Errorf("sums of %v tokens and %v computed ones, want %v and %v", all, computed, 132+91, 132+11)
	}
}

func TestSubmitRefuses(t *testing.T) {
	e := newEngine(t, Config{MaxModelLen: 100, MaxRequests: 2})
	submit(t, e, 0, prompt(1, 1, 10, 5))
	for name, c := range map[string]struct {
		r    Request
		want error
	}{
		"no prompt":              {Request{ID: 2, OutputTokens: 1}, ErrBadRequest},
		"no output":              {Request{ID: 2, PromptTokens: 1}, ErrBadRequest},
		"context full":           {prompt(2, 1, 100, 1), ErrTooLong},
		"hash of half a block":   {Request{ID: 2, PromptTokens: 15, Blocks: chain(1, 1), OutputTokens: 1}, ErrBadRequest},
		"own reason":             {Request{ID: 2, PromptTokens: 1, OutputTokens: 1, Finish: "tired"}, ErrBadRequest},
		"priority without order": {Request{ID: 2, PromptTokens: 1, OutputTokens: 1, Priority: 1}, ErrBadRequest},
		"id in use":              {prompt(1, 1, 10, 1), ErrDuplicateID},
	} {
		if err := e.Submit(0, c.r); !errors.Is(err, c.want) {
			t.Errorf("%s: Submit = %v, want %v", name, err, c.want)
		}
	}
	submit(t, e, 0, prompt(2, 1, 99, 1))
	if err := e.Submit(0, prompt(3, 1, 10, 1)); !errors.Is(err, ErrFull) {
		t.Errorf("third of at most two requests: %v, want %v", err, ErrFull)
	}
	drain(t, e)
	submit(t, e, time.Second, prompt(1, 1, 10, 1)) // an id is free again when its request has ended
}
