package simengine

import (
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
