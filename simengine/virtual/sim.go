package virtual

import (
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

// Stop ends Run after what is being told.
func (s *Sim) Stop() {
	s.mayAct()
	s.stopped = true
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
