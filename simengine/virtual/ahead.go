package virtual

import (
	"cmp"
	"slices"
	"time"
)

// aheadMax bounds how far engines run ahead, and so the memory of what they did.
const aheadMax = time.Second

// RunAhead lets each engine run up to the next scheduled event by itself, or for
// a second, before what happened is told. Nothing changes of what is told or of its order; but an
// engine's memory is fetched once for all that it does until then, where going
// from engine to engine in the order of time finds it gone from the processor's
// caches each time. It pays where an engine takes in several requests between
// two events, so tell of arrivals beforehand, with SubmitAt.
//
// In return Outputs and KVEvents must only listen: a call of a method of the Sim
// that acts on it or looks at an engine panics.
func (s *Sim) RunAhead() { s.ahead = true }

// mayAct panics if engines are ahead of what is being told.
func (s *Sim) mayAct() {
	if s.telling {
		panic("virtual: what is told while engines run ahead must only be listened to")
	}
}

// moment is what an engine did at a time: where that ends in Sim.outputs and
// Sim.kv.
type moment struct {
	at              time.Duration
	engine          int32
	outputs, outEnd int32
	kv, kvEnd       int32
}

// runAhead lets all engines, the first of which is due at next, do what they do
// up to the next event, at most until, and then tells of it.
func (s *Sim) runAhead(next, until time.Duration) {
	until = min(until, next+aheadMax)
	if q := s.events.heap; len(q) > 0 && q[0].At <= until {
		if until = q[0].At; q[0].Kind <= Engines {
			until--
		}
	}
	s.outputs, s.kv, s.pending = s.outputs[:0], s.kv[:0], s.pending[:0]
	for engine := range s.engines {
		s.runOne(engine, until)
	}
	slices.SortFunc(s.pending, func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.engine, b.engine))
	})
	s.telling = true
	for _, m := range s.pending {
		s.now, s.kind = m.at, Engines
		s.tell(int(m.engine), s.outputs[m.outputs:m.outEnd], s.kv[m.kv:m.kvEnd])
	}
	s.telling = false
}

// runOne lets an engine do what it does up to until.
func (s *Sim) runOne(engine int, until time.Duration) {
	at := s.dues.of(engine)
	if at > until {
		return
	}
	e := s.engines[engine]
	for busy := true; busy && at <= until; at, busy = s.due(e) {
		outputs, kv := s.proceed(e, at)
		if len(outputs) == 0 && len(kv) == 0 {
			continue
		}
		m := moment{at: at, engine: int32(engine), outputs: int32(len(s.outputs)), kv: int32(len(s.kv))}
		s.outputs, s.kv = append(s.outputs, outputs...), append(s.kv, kv...)
		m.outEnd, m.kvEnd = int32(len(s.outputs)), int32(len(s.kv))
		s.pending = append(s.pending, m)
	}
	s.changed(engine)
}
