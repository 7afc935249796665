package simengine

import (
	"testing"
	"time"
)

// sleeper is an engine with one request in the batch, one that waits and one
// that came after Sleep was called, which was in the middle of a step.
func sleeper(t *testing.T, level int, mode PauseMode) *Engine {
	t.Helper()
	e := newEngine(t, Config{MaxNumSeqs: 1})
	submit(t, e, 0, prompt(1, 1, 64, 4), prompt(2, 2, 64, 4))
	step(t, e)
	step(t, e)
	if err := e.Sleep(1500*time.Microsecond, level, mode); err != nil {
		t.Fatalf("Sleep(%d, %d): %v", level, mode, err)
	}
	submit(t, e, 1600*time.Microsecond, prompt(3, 1, 64, 4))
	return e
}

func TestSleepModes(t *testing.T) {
	for name, c := range map[string]struct {
		level    int
		mode     PauseMode
		asleep   map[uint64]string // reason of those that ended before Wake
		first    time.Duration     // of request 3
		firstRun time.Duration     // last token of request 1, if it ran on
		cached   int               // of request 3
	}{
		"abort":          {1, PauseAbort, map[uint64]string{1: ReasonAbort, 2: ReasonAbort}, time.Second + time.Millisecond, 0, 0},
		"abort, level 0": {0, PauseAbort, map[uint64]string{1: ReasonAbort, 2: ReasonAbort}, time.Second + time.Millisecond, 0, 48},
		"wait":           {2, PauseWait, map[uint64]string{1: ReasonStop}, time.Second + 5*time.Millisecond, 4 * time.Millisecond, 0},
		"keep":           {0, PauseKeep, nil, time.Second + 7*time.Millisecond, time.Second + 2*time.Millisecond, 48},
		"keep, level 1":  {1, PauseKeep, nil, time.Second + 7*time.Millisecond, time.Second + 2*time.Millisecond, 48},
	} {
		t.Run(name, func(t *testing.T) {
			e := sleeper(t, c.level, c.mode)
			if level, asleep := e.Asleep(); level != c.level || !asleep {
				t.Errorf("Asleep() = %d, %v, want %d, true", level, asleep, c.level)
			}
			for id, o := range drain(t, e) {
				if o.Finished && o.Reason != c.asleep[id] || !o.Finished && c.asleep[id] != "" {
					t.Errorf("request %d ended asleep with %q, want %q", id, o.Reason, c.asleep[id])
				}
			}
			if c.level > 0 && e.Stats().KVUsage != 0 {
				t.Errorf("KVUsage = %v asleep, want 0", e.Stats().KVUsage)
			}
			e.Wake(time.Second)
			last := drain(t, e)
			if _, asleep := e.Asleep(); asleep {
				t.Error("Asleep() = true after Wake")
			}
			if o := last[3]; o.Reason != ReasonStop || o.Times.First != c.first || o.CachedTokens != c.cached {
				t.Errorf("request 3: %q, first token at %v, %d cached, want %v, %d", o.Reason, o.Times.First, o.CachedTokens, c.first, c.cached)
			}
			if o, ran := last[1]; ran && o.Times.At != c.firstRun {
				t.Errorf("request 1 ended at %v, want %v", o.Times.At, c.firstRun)
			}
		})
	}
}

func TestSleepRefuses(t *testing.T) {
	e := newEngine(t, Config{})
	for _, level := range []int{-1, 3} {
		if err := e.Sleep(0, level, PauseAbort); err == nil {
			t.Errorf("Sleep(%d) = nil, want an error", level)
		}
	}
	if err := e.Sleep(0, 1, PauseKeep+1); err == nil {
		t.Error("Sleep in a mode that doesn't exist = nil, want an error")
	}
	e.Wake(0)
	if _, asleep := e.Asleep(); asleep {
		t.Error("Asleep() = true")
	}
}

// Sleep and Wake within one step change nothing for those that are kept.
func TestShortNap(t *testing.T) {
	e := newEngine(t, Config{})
	submit(t, e, 0, prompt(1, 1, 64, 4))
	step(t, e)
	if err := e.Sleep(100, 0, PauseKeep); err != nil {
		t.Fatal(err)
	}
	e.Wake(200)
	if got := drain(t, e)[1].Times.At; got != 4*time.Millisecond {
		t.Errorf("ended at %v, want 4ms", got)
	}
}
