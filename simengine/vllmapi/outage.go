package vllmapi

import (
	"context"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// serverState is what faults make of the server as a whole.
type serverState struct {
	factor float64
	paused bool
	asleep bool
	level  int // of the sleep
	shut   bool
}

var sound = serverState{factor: 1}

// Run makes faults of the server set in and end in time. It blocks until ctx
// ends, then undoes them.
func (fs *Faults) Run(ctx context.Context) {
	current := sound
	restarted := make(map[*armedFault]bool)
	for {
		wanted, restart, next := fs.plan(time.Now(), restarted)
		if ctx.Err() != nil {
			wanted, restart = sound, false
		}
		if current = fs.apply(current, wanted, restart); current != wanted {
			next = min(next, reopenAfter)
		}
		if ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-fs.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// plan tells what the server should be like now, whether it is to start anew,
// and in how long to ask again.
func (fs *Faults) plan(now time.Time, restarted map[*armedFault]bool) (wanted serverState, restart bool, next time.Duration) {
	wanted, next = sound, time.Hour
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, a := range fs.armed {
		if !a.ofServer() {
			continue
		}
		begin, end := a.added.Add(a.At), a.added.Add(a.At+a.For)
		for _, change := range []time.Time{begin, end} {
			if wait := change.Sub(now); wait > 0 {
				next = min(next, wait)
			}
		}
		if now.Before(begin) {
			continue
		}
		if a.Kind == FaultRestart && !restarted[a] {
			restart, restarted[a] = true, true
		}
		if a.For > 0 && !now.Before(end) {
			continue
		}
		switch a.Kind {
		case FaultSlow:
			wanted.factor *= a.Factor
		case FaultPause:
			wanted.paused = true
		case FaultSleep:
			wanted.asleep, wanted.level = true, max(wanted.level, a.Level)
		case FaultRestart:
			wanted.shut = wanted.shut || a.For > 0
		case FaultRefuse:
			wanted.shut = true
		}
	}
	return wanted, restart, next
}

// apply makes the server so, and returns what it is like then: a port that
// someone else took meanwhile stays shut.
func (fs *Faults) apply(current, wanted serverState, restart bool) serverState {
	door := fs.door.Load()
	if door != nil && (restart || wanted.shut && !current.shut) {
		door.shut()
	}
	if restart {
		fs.restart()
		current.asleep, current.level = false, 0
	}
	if door != nil && !wanted.shut && (restart || current.shut) && door.open() != nil {
		wanted.shut = true
	}
	driver := fs.s.c.Driver
	if wanted.factor != current.factor {
		driver.SlowBy(wanted.factor)
	}
	if wanted.paused && !current.paused {
		driver.Pause()
	}
	if !wanted.paused && current.paused {
		driver.Resume()
	}
	fs.sleep(current, wanted)
	return wanted
}

// restart is what a new process starts with.
func (fs *Faults) restart() {
	fs.s.c.Driver.Restart()
	fs.s.store.clear()
	fs.s.adapters.reset(fs.s.c.ServedModels)
	if fs.s.c.Exporter != nil {
		fs.s.c.Exporter.Restart(time.Now())
	}
	if fs.s.c.Restarted != nil {
		fs.s.c.Restarted()
	}
}

func (fs *Faults) sleep(current, wanted serverState) {
	if wanted.asleep == current.asleep && wanted.level == current.level {
		return
	}
	shown := 0
	if wanted.asleep {
		shown = wanted.level
		_ = fs.s.c.Driver.Sleep(wanted.level, simengine.PauseAbort) // Validate saw the level
	} else {
		fs.s.c.Driver.Wake()
	}
	if fs.s.c.Exporter != nil {
		fs.s.c.Exporter.SetSleep(shown)
	}
}
