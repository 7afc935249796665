package fit

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// maxReplicas bounds the engines of a simulation.
const maxReplicas = 64

// Timeline is what the simulated engines did with the requests of a run.
type Timeline struct {
	Requests []Outcome // as Run.Requests
	steps    []steps   // of each engine
}

// Outcome is what became of one request.
type Outcome struct {
	Arrived, Scheduled, First, Last time.Duration
	engine                          int
}

// TTFT is the time to the first token, from arrival.
func (o *Outcome) TTFT() time.Duration { return o.First - o.Arrived }

// E2E is the time to the last token, from arrival.
func (o *Outcome) E2E() time.Duration { return o.Last - o.Arrived }

// steps are those of one engine, in order.
type steps struct {
	began, ended []time.Duration
	done         []work // up to and with each step
	shown        []shown
}

// shown is what an engine shows at the end of a step.
type shown struct {
	running, waiting int32
	usage            float32
}

// terms are the coefficients of simengine.Cost that steps have: Base,
// PrefillToken, DecodeSeq, ContextToken, AttentionTerm, Experts, FirstStep.
const (
	terms     = 7
	prefill   = 1
	experts   = terms - 2
	firstStep = terms - 1
)

// work is how often each term was paid.
type work [terms]float64

func (w work) minus(v work) work {
	for i := range w {
		w[i] -= v[i]
	}
	return w
}

// stepsMax bounds a simulation, so that no cost makes it endless.
const stepsMax = 20_000_000

// Simulate runs the recorded load through engines of configuration c.
func (r *Run) Simulate(c simengine.Config) (*Timeline, error) {
	if room := (c.Blocks - 1) * c.BlockSize; c.MaxModelLen > room {
		c.MaxModelLen = room
	}
	tl := &Timeline{Requests: make([]Outcome, len(r.Requests)), steps: make([]steps, max(1, r.Replicas))}
	engines := make([]*simengine.Engine, len(tl.steps))
	for i := range engines {
		e, err := simengine.New(c)
		if err != nil {
			return nil, fmt.Errorf("simulating the run: %w", err)
		}
		engines[i] = e
	}
	var b balancer
	total, next := 0, 0
	for {
		at, which := time.Duration(math.MaxInt64), -1
		for i, e := range engines {
			if t, busy := e.Next(); busy && t < at {
				at, which = t, i
			}
		}
		if next < len(r.Requests) && (which < 0 || r.Requests[next].Arrived <= at) {
			if err := r.submit(tl, engines, &b, next); err != nil {
				return nil, fmt.Errorf("simulating the run: request %s: %w", r.Requests[next].ID, err)
			}
			next++
			continue
		}
		if which < 0 {
			return tl, nil
		}
		if total++; total > stepsMax {
			return nil, fmt.Errorf("simulating the run: no end after %d steps", stepsMax)
		}
		tl.step(engines[which], c.Cost, which, at)
	}
}

func (r *Run) submit(tl *Timeline, engines []*simengine.Engine, b *balancer, i int) error {
	q := &r.Requests[i]
	to := b.pick(q.Arrived, engines)
	tl.Requests[i] = Outcome{Arrived: q.Arrived, engine: to}
	own := make([]uint64, (q.Prompt+q.Output)/r.Engine.BlockSize-len(q.Blocks))
	for j := range own {
		own[j] = ownBlock(i, len(q.Blocks)+j)
	}
	return engines[to].Submit(q.Arrived, simengine.Request{
		ID: uint64(i), PromptTokens: q.Prompt, OutputTokens: q.Output, Blocks: q.Blocks, OutputBlocks: own,
	})
}

// step does the next step of an engine and books the one that ended.
func (tl *Timeline) step(e *simengine.Engine, c simengine.Cost, which int, at time.Duration) {
	s := &tl.steps[which]
	w, busy := e.Working()
	for _, o := range e.Step(at) {
		x := &tl.Requests[o.ID]
		x.Scheduled, x.First, x.Last = o.Times.Scheduled, o.Times.First, o.Times.At
	}
	if busy {
		var done work
		if n := len(s.done); n > 0 {
			done = s.done[n-1]
		}
		for i, x := range [...]float64{
			1, float64(max(0, w.PrefillTokens-c.PrefillFree)), float64(w.DecodeSeqs), float64(w.ContextTokens), w.Attention,
			1 - math.Pow(1-c.ExpertShare, float64(w.PrefillTokens+w.DecodeSeqs)),
		} {
			done[i] += x
		}
		s.done = append(s.done, done)
		s.ended = append(s.ended, at)
		stats := e.Stats()
		s.shown = append(s.shown, shown{int32(stats.Running), int32(stats.Waiting), float32(stats.KVUsage)})
	}
	if _, busy := e.Working(); busy {
		s.began = append(s.began, at)
	}
}

// by returns the work that was done in whole steps that ended up to t.
func (s *steps) by(t time.Duration) work {
	n := sort.Search(len(s.ended), func(i int) bool { return s.ended[i] > t })
	if n == 0 {
		return work{}
	}
	return s.done[n-1]
}
