package cluster

import (
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/virtual"
)

// kind is what happens.
type kind uint8

const (
	arrive  kind = iota // job a comes to its proxy
	scrape              // proxy a looks at engine b
	deliver             // the page that proxy a took of engine b is read
	health              // all proxies look who answers
	change              // step a of the scenario
)

// Whatever happens at the time of a step's end comes after it, and what happens
// at one time in the order in which it was planned.
const afterEngines = virtual.Engines + 1

func (s *sim) plan(at time.Duration, k kind, a, b int) {
	s.clock.Schedule(virtual.Event{At: at, Kind: afterEngines, Actor: int32(a), Arg: uint64(k)<<32 | uint64(b)})
}

// Event is called by the clock.
func (s *sim) Event(e virtual.Event) {
	s.now = e.At
	s.check(s.happen(kind(e.Arg>>32), int(e.Actor), int(uint32(e.Arg))))
}

// Outputs is called by the clock at the end of an engine's step.
func (s *sim) Outputs(_ int, outputs []simengine.Output) {
	s.now = s.clock.Now()
	s.heard(outputs)
	s.check(nil)
}

// check stops the clock when there is nothing more to see.
func (s *sim) check(err error) {
	if s.failure == nil {
		s.failure = err
	}
	if s.failure != nil || s.left == 0 || s.over {
		s.clock.Stop()
	}
}
