package simengine

import (
	"reflect"
	"testing"
	"time"
)

// ttft runs a request on its own and returns the time to its first token.
func ttft(t *testing.T, e *Engine, now time.Duration, r Request) time.Duration {
	t.Helper()
	submit(t, e, now, r)
	o := drain(t, e)[r.ID]
	return o.Times.First - o.Times.Arrived
}

// shares is a prompt of 10,000 tokens of which so many blocks are those of text.
func shares(id uint64, text, blocks, own int) Request {
	r := prompt(id, own, 10_000, 1)
	copy(r.Blocks, chain(text, blocks))
	return r
}

// The more is cached the sooner comes the first token, in proportion to what is
// left to compute.
func TestFC112FirstTokenDependsOnCachedTokens(t *testing.T) {
	e := newEngine(t, Config{Cost: costH100x8B})
	cold := ttft(t, e, 0, shares(1, 1, 625, 1))
	last := cold
	for i, blocks := range []int{100, 312, 562, 600, 625} {
		now := time.Duration(i+1) * time.Minute
		got := ttft(t, e, now, shares(uint64(i+2), 1, blocks, 100+i))
		if got >= last {
			t.Errorf("with %d of 625 blocks common the first token takes %v, with fewer %v", blocks, got, last)
		}
		last = got
	}
	// Whole repeat: host, a step's base and one block are left.
	if want := costH100x8B.RequestOverhead + costH100x8B.Step(Work{PrefillTokens: 16, Attention: 16 * (9984 + 8)}); last != want {
		t.Errorf("a whole repeat takes %v, want %v", last, want)
	}
}

// Three prompts of 625 blocks in rotation through 1,000 never meet a block: each
// was the oldest when room was needed. Two fit if they are of 500.
func TestFC112CacheThatIsTooSmallForTheRotation(t *testing.T) {
	e := newEngine(t, Config{Blocks: 1001, MaxModelLen: 12_000})
	var id uint64
	for round := range 3 {
		for text := range 3 {
			id++
			submit(t, e, time.Duration(id)*time.Minute, shares(id, text, 625, text))
			if got := drain(t, e)[id].CachedTokens; got != 0 {
				t.Errorf("round %d, prompt %d: %d tokens cached, want none", round, text, got)
			}
		}
	}
	for round := range 3 {
		for text := range 2 {
			id++
			submit(t, e, time.Duration(id)*time.Minute, prompt(id, 10+text, 7900, 1))
			if got := drain(t, e)[id].CachedTokens; round > 0 && got != 493*16 {
				t.Errorf("round %d, prompt %d: %d tokens cached, want all full blocks", round, text, got)
			}
		}
	}
}

// What a request runs on is not evicted, whatever passes by.
func TestFC112RunningBlocksArePinned(t *testing.T) {
	e := newEngine(t, Config{Blocks: 101})
	submit(t, e, 0, prompt(1, 1, 640, 600))
	for id := uint64(2); id < 40; id++ {
		submit(t, e, time.Duration(id)*10*time.Millisecond, prompt(id, int(id), 160, 1))
	}
	for {
		if at, _ := e.Next(); at > 400*time.Millisecond {
			break
		}
		step(t, e)
	}
	submit(t, e, 401*time.Millisecond, prompt(40, 1, 641, 1))
	if last := drain(t, e); last[40].CachedTokens != 640 || last[1].GeneratedTokens != 600 {
		t.Errorf("the running prompt's blocks: %d of 640 tokens found, %d generated", last[40].CachedTokens, last[1].GeneratedTokens)
	}
	if s := e.Stats(); s.Preemptions != 0 || s.Evictions == 0 {
		t.Errorf("Stats() = %+v, want evictions beside it and no preemption", s)
	}
}

// Eight requests on four slots: four run, four wait, and the gauges say so.
func TestFC112FifthToEighthWait(t *testing.T) {
	e := newEngine(t, Config{MaxNumSeqs: 4})
	for id := range uint64(8) {
		submit(t, e, 0, prompt(id, int(id), 100, 10))
	}
	step(t, e)
	at, _ := step(t, e)
	if s := e.Stats(); s.Running != 4 || s.Waiting != 4 {
		t.Errorf("Stats() at %v = %d running, %d waiting, want 4, 4", at, s.Running, s.Waiting)
	}
	for id, o := range drain(t, e) {
		if want := time.Duration(id/4) * 10 * time.Millisecond; o.Times.Scheduled != want {
			t.Errorf("request %d scheduled at %v, want %v", id, o.Times.Scheduled, want)
		}
	}
}

// Two requests with the same cold prefix at the same time: the second computes
// what is its own.
func TestFC112SameColdPrefixAtTheSameTime(t *testing.T) {
	e := newEngine(t, Config{Cost: costH100x8B, MaxNumBatchedTokens: 16_384})
	submit(t, e, 0, shares(1, 1, 625, 1), shares(2, 1, 562, 2))
	last := drain(t, e)
	if a, b := last[1], last[2]; a.CachedTokens != 0 || b.CachedTokens != 562*16 || a.Times.First != b.Times.First {
		t.Errorf("cached %d and %d, first tokens at %v and %v", a.CachedTokens, b.CachedTokens, a.Times.First, b.Times.First)
	}
}

func TestFC112SameAgain(t *testing.T) {
	run := func() (all []Output) {
		e := newEngine(t, Config{Cost: costH100x8B, Blocks: 1001, MaxModelLen: 12_000, MaxNumSeqs: 4})
		for id := range uint64(12) {
			submit(t, e, time.Duration(id)*30*time.Millisecond, shares(id, int(id%3), 300, int(id)))
		}
		for {
			if _, busy := e.Next(); !busy {
				return all
			}
			_, out := step(t, e)
			all = append(all, out...)
		}
	}
	if a, b := run(), run(); !reflect.DeepEqual(a, b) {
		t.Error("the same requests came out differently")
	}
}
