package simengine

import (
	"fmt"
	"slices"
	"time"
)

// PauseMode says what becomes of the requests of an engine that goes to sleep;
// the modes of vLLM's /sleep and /pause. New requests wait in any case.
type PauseMode uint8

const (
	PauseAbort PauseMode = iota // all in the engine are aborted; vLLM's default
	PauseWait                   // those in the batch run to their end, the others wait
	PauseKeep                   // all stop where they are
)

// LevelMax is the deepest sleep: 0 holds the scheduler and no more, 1 also drops
// the KV cache and moves the weights away, 2 drops the weights too.
const LevelMax = 2

// control is a Sleep or Wake that is to be seen at the end of a step.
type control struct {
	at   time.Duration
	wake bool
	pause
}

// pause is how an engine sleeps.
type pause struct {
	level int
	mode  PauseMode
}

// Sleep holds the scheduler from the end of the step in progress on. From level
// 1 on the cache is dropped as soon as the mode allows: with PauseKeep those in
// the batch are preempted for it. A Sleep of a sleeping engine replaces the
// first. The error names a level or mode that doesn't exist.
func (e *Engine) Sleep(now time.Duration, level int, mode PauseMode) error {
	if level < 0 || level > LevelMax {
		return fmt.Errorf("sleeping: level is %d, want 0 to %d", level, LevelMax)
	}
	if mode > PauseKeep {
		return fmt.Errorf("sleeping: unknown mode %d", mode)
	}
	e.clock = max(e.clock, now)
	if mode == PauseAbort {
		for _, list := range [][]*sequence{e.running, e.waiting.all(), e.arriving} {
			for _, s := range list {
				if s.times.Arrived <= e.clock {
					e.Cancel(now, s.ID)
				}
			}
		}
	}
	e.controls = append(e.controls, control{at: e.clock, pause: pause{level, mode}})
	return nil
}

// Wake lets the scheduler go on. It does nothing to an engine that is awake.
func (e *Engine) Wake(now time.Duration) {
	e.clock = max(e.clock, now)
	e.controls = append(e.controls, control{at: e.clock, wake: true})
}

// Asleep tells whether the engine was put to sleep, and how deep. It answers at
// once, though a step may be in progress.
func (e *Engine) Asleep() (level int, asleep bool) {
	if n := len(e.controls); n > 0 {
		return e.controls[n-1].level, !e.controls[n-1].wake
	}
	return e.paused.level, e.asleep
}

// control does what Sleep and Wake asked for up to now, and tells whether there
// was anything to do.
func (e *Engine) control(now time.Duration) bool {
	n := 0
	for n < len(e.controls) && e.controls[n].at <= now {
		c := e.controls[n]
		e.asleep, e.paused = !c.wake, c.pause
		e.clearing = e.asleep && c.level > 0
		e.clear()
		n++
	}
	e.controls = slices.Delete(e.controls, 0, n)
	return n > 0
}

// clear drops the cache for Sleep, if it may yet.
func (e *Engine) clear() {
	if !e.clearing || e.paused.mode == PauseWait && len(e.running) > 0 {
		return
	}
	for len(e.running) > 0 {
		e.preempt(len(e.running) - 1)
	}
	e.clearing = !e.ResetPrefixCache()
}
