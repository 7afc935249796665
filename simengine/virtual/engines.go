package virtual

import (
	"fmt"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Add adds an idle engine and returns its number. Errors are those of
// simengine.New.
func (s *Sim) Add(c simengine.Config) (engine int, err error) {
	e, err := simengine.New(c)
	if err != nil {
		return 0, fmt.Errorf("adding engine %d: %w", len(s.engines), err)
	}
	s.engines = append(s.engines, e)
	s.dues.add()
	return len(s.engines) - 1, nil
}

// Len is the number of engines.
func (s *Sim) Len() int { return len(s.engines) }

// Config returns an engine's configuration.
func (s *Sim) Config(engine int) simengine.Config { return s.engines[engine].Config() }

// Submit is simengine.Engine.Submit, now.
func (s *Sim) Submit(engine int, r simengine.Request) error { return s.SubmitAt(engine, s.now, r) }

// SubmitAt tells an engine beforehand of a request that arrives at at, or now if
// that is over; not before the one that it was told of last.
func (s *Sim) SubmitAt(engine int, at time.Duration, r simengine.Request) error {
	err := s.engines[engine].Submit(max(at, s.now), r)
	s.changed(engine)
	return err
}

// Cancel is simengine.Engine.Cancel, now. The handler is told of the abort when
// the engine takes notice.
func (s *Sim) Cancel(engine int, id uint64) {
	s.engines[engine].Cancel(s.now, id)
	s.changed(engine)
}

// Stats is what the engine showed at the end of its last step: up to now for a
// kind above Engines, before now for others.
func (s *Sim) Stats(engine int) simengine.Stats { return s.reached(engine).Stats() }

// Engine returns an engine as Stats sees it, to be asked for a Forecast, what is
// Cached and the like. What changes it must go through the Sim.
func (s *Sim) Engine(engine int) *simengine.Engine { return s.reached(engine) }

// SetCost gives an engine other costs, from its next step on. Errors are those
// of simengine.Engine.SetCost.
func (s *Sim) SetCost(engine int, c simengine.Cost) error {
	err := s.reached(engine).SetCost(c)
	s.changed(engine)
	return err
}

// Sleep is simengine.Engine.Sleep, now.
func (s *Sim) Sleep(engine, level int, mode simengine.PauseMode) error {
	err := s.engines[engine].Sleep(s.now, level, mode)
	s.changed(engine)
	return err
}

// Wake is simengine.Engine.Wake, now.
func (s *Sim) Wake(engine int) {
	s.engines[engine].Wake(s.now)
	s.changed(engine)
}

// Restart replaces an engine by a cold one of the same configuration. It returns
// the ids of the requests that are lost, running ones first; the handler isn't
// told of them any more.
func (s *Sim) Restart(engine int) (lost []uint64) {
	lost = s.engines[engine].Requests()
	fresh, err := simengine.New(s.engines[engine].Config())
	if err != nil {
		panic(err) // an engine runs on it
	}
	s.engines[engine] = fresh
	s.changed(engine)
	return lost
}

// reached brings an engine up to where it may be looked at. Whatever it has to
// tell until there was told.
func (s *Sim) reached(engine int) *simengine.Engine {
	s.mayAct()
	e := s.engines[engine]
	until := s.now
	if s.kind <= Engines {
		until--
	}
	if !s.each && len(e.Advance(until)) > 0 {
		panic("virtual: an output that was not told")
	}
	return e
}

func (s *Sim) changed(engine int) {
	s.mayAct()
	at, busy := s.due(s.engines[engine])
	if !busy {
		at = idle
	}
	s.dues.set(engine, at)
}

func (s *Sim) due(e *simengine.Engine) (at time.Duration, busy bool) {
	if s.each {
		return e.Next()
	}
	return e.Due()
}

// proceed lets an engine do what is due at a time.
func (s *Sim) proceed(e *simengine.Engine, at time.Duration) ([]simengine.Output, []simengine.KVEvent) {
	if s.each {
		return e.Step(at), e.KVEvents()
	}
	return e.Advance(at), e.KVEvents()
}
