package simengine

import (
	"errors"
	"testing"
	"time"
)

// flat is a cost by which every step takes a millisecond, so that times count
// steps.
var flat = Cost{Base: time.Millisecond}

func newEngine(t testing.TB, c Config) *Engine {
	t.Helper()
	if c.Cost == (Cost{}) {
		c.Cost = flat
	}
	e, err := New(c)
	if err != nil {
		t.Fatalf("New(%+v): %v", c, err)
	}
	return e
}

func submit(t testing.TB, e *Engine, now time.Duration, requests ...Request) {
	t.Helper()
	for _, r := range requests {
		if err := e.Submit(now, r); err != nil {
			t.Fatalf("Submit(%v, %d): %v", now, r.ID, err)
		}
	}
}

// chain returns the hashes of n blocks of a text of its own.
func chain(text, n int) []uint64 {
	hashes := make([]uint64, n)
	for i := range hashes {
		hashes[i] = uint64(text)<<32 | uint64(i+1)
	}
	return hashes
}

// prompt is a request of blocks of 16 tokens, each with a hash.
func prompt(id uint64, text, tokens, output int) Request {
	return Request{ID: id, PromptTokens: tokens, Blocks: chain(text, tokens/16), OutputTokens: output}
}

// step does the next step and checks that everything still fits together.
func step(t testing.TB, e *Engine) (time.Duration, []Output) {
	t.Helper()
	at, busy := e.Next()
	if !busy {
		t.Fatal("Next() = idle, want a step")
	}
	out := e.Step(at)
	if err := e.invariants(); err != nil {
		t.Fatalf("after Step(%v): %v", at, err)
	}
	return at, out
}

// drain steps until nothing is left and returns the last Output of each request.
func drain(t testing.TB, e *Engine) map[uint64]Output {
	t.Helper()
	last := make(map[uint64]Output)
	for range 1_000_000 {
		if _, busy := e.Next(); !busy {
			return last
		}
		_, out := step(t, e)
		for _, o := range out {
			last[o.ID] = o
		}
	}
	t.Fatal("the engine never came to rest")
	return nil
}

// The last token of a prompt is always computed, and with it its whole block.
func TestRepeatOfAWholePromptComputesItsLastBlock(t *testing.T) {
	for _, c := range []struct{ tokens, cached int }{{64, 48}, {65, 64}, {63, 48}, {16, 0}, {17, 16}} {
		e := newEngine(t, Config{})
		submit(t, e, 0, prompt(1, 1, c.tokens, 1))
		drain(t, e)
		submit(t, e, time.Second, prompt(2, 1, c.tokens, 1))
		if got := drain(t, e)[2].CachedTokens; got != c.cached {
			t.Errorf("repeat of %d tokens: %d cached, want %d", c.tokens, got, c.cached)
		}
		s := e.Stats()
		if want := uint64(2 * c.tokens); s.PrefixQueries != want || s.PrefixHits != uint64(c.cached) || s.PromptTokens != want || s.PromptTokensCached != uint64(c.cached) {
			t.Errorf("repeat of %d tokens: stats %+v", c.tokens, s)
		}
	}
}

// A request that wants log probabilities of its prompt computes all of it, and
// others find what it computed.
func TestSkipPrefixCacheReadsNothingAndWrites(t *testing.T) {
	e := newEngine(t, Config{})
	submit(t, e, 0, prompt(1, 1, 64, 1))
	drain(t, e)
	skips := prompt(2, 1, 96, 1)
	skips.SkipPrefixCache = true
	submit(t, e, time.Second, skips)
	if got := drain(t, e)[2].CachedTokens; got != 0 {
		t.Errorf("%d tokens cached, want none looked up", got)
	}
	if s := e.Stats(); s.PrefixQueries != 64 || s.PrefixHits != 0 {
		t.Errorf("Stats() = %+v, want the queries of the first alone", s)
	}
	submit(t, e, 2*time.Second, prompt(3, 1, 97, 1))
	if got := drain(t, e)[3].CachedTokens; got != 96 {
		t.Errorf("%d tokens cached after it, want 96", got)
	}
}

// Blocks can be found from the moment they are scheduled to be computed.
func TestEqualPromptsOfOneStepShareBlocks(t *testing.T) {
	e := newEngine(t, Config{})
	submit(t, e, 0, prompt(1, 1, 100, 2), prompt(2, 1, 100, 2), prompt(3, 2, 100, 2))
	step(t, e)
	_, out := step(t, e)
	if len(out) != 3 || out[0].CachedTokens != 0 || out[1].CachedTokens != 96 || out[2].CachedTokens != 0 {
		t.Errorf("cached tokens of a prompt, its double and another: %+v", out)
	}
	if got, want := e.Stats().KVUsage, float64(7+1+7)/float64(DefaultBlocks-1); got < want-1e-9 || got > want+1e-9 {
		t.Errorf("KVUsage = %v, want 15 blocks, %v", got, want)
	}
}

// An answer becomes part of the next turn's prompt and is found again.
func TestNextTurnFindsTheAnswerOfTheLast(t *testing.T) {
	e := newEngine(t, Config{})
	conversation := chain(1, 20)
	submit(t, e, 0, Request{ID: 1, PromptTokens: 40, Blocks: conversation[:2], OutputTokens: 61, OutputBlocks: conversation[2:]})
	drain(t, e)
	// 40 + 61 tokens are known, the last was never computed: 6 blocks.
	submit(t, e, time.Second, Request{ID: 2, PromptTokens: 170, Blocks: conversation[:10], OutputTokens: 1})
	if got := drain(t, e)[2].CachedTokens; got != 96 {
		t.Errorf("second turn: %d tokens cached, want 96", got)
	}
}

// The oldest conversation loses its tail first and keeps its head longest.
func TestMemoryPressureTakesTailsFirst(t *testing.T) {
	e := newEngine(t, Config{Blocks: 11})
	submit(t, e, 0, prompt(1, 1, 64, 1))
	drain(t, e)
	submit(t, e, time.Second, prompt(2, 2, 128, 1)) // 8 blocks, 6 were free: two go
	drain(t, e)
	submit(t, e, 2*time.Second, prompt(3, 1, 65, 1))
	if got := drain(t, e)[3].CachedTokens; got != 32 {
		t.Errorf("after two of its four blocks were taken: %d tokens cached, want 32", got)
	}
	if got := e.Stats().Evictions; got < 2 {
		t.Errorf("Evictions = %d, want 2 and those of the third request", got)
	}
}

func TestDisabledCacheNeverHits(t *testing.T) {
	e := newEngine(t, Config{DisablePrefixCaching: true})
	submit(t, e, 0, prompt(1, 1, 64, 1), prompt(2, 1, 64, 1))
	drain(t, e)
	if s := e.Stats(); s.PrefixQueries != 0 || s.PrefixHits != 0 || s.PromptTokensCached != 0 {
		t.Errorf("Stats() = %+v, want no queries and no hits", s)
	}
}

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

func TestResetPrefixCacheNeedsAnIdleEngine(t *testing.T) {
	e := newEngine(t, Config{})
	submit(t, e, 0, prompt(1, 1, 64, 2))
	step(t, e)
	if e.ResetPrefixCache() {
		t.Error("ResetPrefixCache() = true with a request in the batch")
	}
	drain(t, e)
	if !e.ResetPrefixCache() {
		t.Error("ResetPrefixCache() = false on an idle engine")
	}
	submit(t, e, time.Second, prompt(2, 1, 64, 1))
	if got := drain(t, e)[2].CachedTokens; got != 0 {
		t.Errorf("%d tokens cached after the reset, want 0", got)
	}
}
