package main

import (
	"testing"
	"time"
)

// The load is what it says: all requests end, half of what they ask is cached
// once the families are known, and it is the same each time, whenever it is told.
func TestLoadIsWhatItSays(t *testing.T) {
	run := func(known time.Duration) result {
		l, err := newLoad(3, 1500, known)
		if err != nil {
			t.Fatal(err)
		}
		r, err := l.run()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a := run(0)
	if a.CachedPercent < 48 || a.CachedPercent > 50 {
		t.Errorf("%.1f %% of prompt tokens cached, want nearly half", a.CachedPercent)
	}
	if a.TTFTMs < 10 || a.TTFTMs > 100 {
		t.Errorf("mean TTFT %.1f ms, want that of replicas at half load", a.TTFTMs)
	}
	for _, known := range []time.Duration{0, known} {
		if b := run(known); a != b {
			t.Errorf("two runs: %+v and %+v", a, b)
		}
	}
}
