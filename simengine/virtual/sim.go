package virtual

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Handler is told what happens, at its time: Sim.Now is the event's. It may call
// any method of the Sim but Run; see RunAhead for an exception.
type Handler interface {
	// Event is called for what Schedule was told.
	Event(Event)

	// Outputs is called when an engine's step ends with first tokens or ends of
	// requests, aborts included; with TellTokens, with any token. Output.Tokens
	// counts all since the request's previous Output. The slice is valid during
	// the call.
	Outputs(engine int, outputs []simengine.Output)
}

// KVHandler is a Handler that is told of KV events too, those of a step before
// its outputs. Engines tell them if simengine.Config.KVEvents is set; each of
// their steps then costs something. The slice is valid during the call.
type KVHandler interface {
	Handler
	KVEvents(engine int, events []simengine.KVEvent)
}

// Sim is a number of engines, numbered from 0, and a clock that stands at 0.
type Sim struct {
	handler Handler
	seed    uint64

	now    time.Duration
	kind   Kind // of what is being told
	events events
	dues   dues

	engines []*simengine.Engine
	outputs []simengine.Output // being told
	kv      []simengine.KVEvent

	each    bool // token is told
	stopped bool
	ahead   bool
	telling bool     // of what lies behind an engine that is ahead
	pending []moment // to be told
}

// New returns a Sim without engines. All chance in it comes from seed.
func New(seed uint64, h Handler) *Sim { return &Sim{handler: h, seed: seed} }

// Now is the time of what is being told.
func (s *Sim) Now() time.Duration { return s.now }

// TellTokens has Handler.Outputs called for tokens in the middle too. Each step
// of an engine then costs something, as it does with KV events.
func (s *Sim) TellTokens() { s.each = true }

// Random returns the stream of chance of an actor: the same for the same seed
// and name, whatever others draw. Each call begins it anew.
func (s *Sim) Random(actor string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(actor)) // never fails
	return rand.New(rand.NewPCG(s.seed, h.Sum64()))
}

// Schedule has the handler told of e at its time, or now if that is over.
func (s *Sim) Schedule(e Event) {
	s.mayAct()
	e.At = max(e.At, s.now)
	s.events.push(e)
}

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

// Stop ends Run after what is being told.
func (s *Sim) Stop() {
	s.mayAct()
	s.stopped = true
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

// Run tells all that happens up to until, and leaves the clock there; or up to
// Stop, and leaves it where that was called. It returns false when there is
// nothing left to happen.
func (s *Sim) Run(until time.Duration) bool {
	for s.stopped = false; ; {
		if s.stopped {
			return s.more()
		}
		next := idle
		if len(s.dues.heap) > 0 {
			next = s.dues.heap[0].at
		}
		if q := s.events.heap; len(q) > 0 && (q[0].At < next || q[0].At == next && q[0].Kind <= Engines) {
			if q[0].At > until {
				break
			}
			e := s.events.pop()
			s.now, s.kind = e.At, e.Kind
			s.handler.Event(e)
			continue
		}
		if next > until || next == idle {
			break
		}
		if s.ahead {
			s.runAhead(next, until)
			continue
		}
		s.now, s.kind = next, Engines
		s.advance(int(s.dues.heap[0].engine))
	}
	s.now, s.kind = max(s.now, until), Engines+1
	return s.more()
}

func (s *Sim) more() bool {
	return len(s.events.heap) > 0 || len(s.dues.heap) > 0 && s.dues.heap[0].at != idle
}

// advance lets an engine do what is due now, and tells of it.
func (s *Sim) advance(engine int) {
	outputs, kv := s.proceed(s.engines[engine], s.now)
	if !s.each { // then the handler may look at the engine, which uses its slices anew
		s.outputs, s.kv = append(s.outputs[:0], outputs...), append(s.kv[:0], kv...)
		outputs, kv = s.outputs, s.kv
	}
	s.changed(engine)
	s.tell(engine, outputs, kv)
}

func (s *Sim) tell(engine int, outputs []simengine.Output, kv []simengine.KVEvent) {
	if h, ok := s.handler.(KVHandler); ok && len(kv) > 0 {
		h.KVEvents(engine, kv)
	}
	if len(outputs) > 0 {
		s.handler.Outputs(engine, outputs)
	}
}
