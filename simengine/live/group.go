package live

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// snapshotAge is how often vLLM's coordinator tells the API server how loaded
// its data-parallel engines are (v1/engine/coordinator.py).
const snapshotAge = 100 * time.Millisecond

// RanksMax bounds the drivers of a Group.
const RanksMax = 64

// Group is the data-parallel engines behind one API server, and the balancer
// in front of them. It scores engines as vLLM's does: by the requests that it
// sent there and by counts that are up to 100 ms old. Its methods may be called
// concurrently.
type Group struct {
	drivers []*Driver

	mu    sync.Mutex // held while drivers are asked, never the other way round
	seen  []counts
	asked time.Time // when seen was
	first int       // where the scan begins
}

// counts are what the balancer last heard of an engine.
type counts struct {
	waiting, running int
	usage            float64
}

// NewGroup returns a group of the drivers, rank 0 first. It takes 1 to RanksMax
// drivers of one configuration, which belong to it from now on.
func NewGroup(drivers ...*Driver) (*Group, error) {
	if len(drivers) == 0 || len(drivers) > RanksMax {
		return nil, errors.New("grouping engines: want 1 to 64 of them")
	}
	for _, d := range drivers[1:] {
		if d.Config() != drivers[0].Config() {
			return nil, errors.New("grouping engines: configurations differ")
		}
	}
	for i, d := range drivers {
		d.rank = i
	}
	return &Group{drivers: drivers, seen: make([]counts, len(drivers))}, nil
}

// Run runs all drivers until ctx ends, and returns the cause.
func (g *Group) Run(ctx context.Context) error {
	var group sync.WaitGroup
	for _, d := range g.drivers {
		group.Go(func() { _ = d.Run(ctx) }) // the cause is the same for all
	}
	group.Wait()
	return context.Cause(ctx)
}

// Rank returns the driver of a rank, nil if there is none.
func (g *Group) Rank(i int) *Driver {
	if i < 0 || i >= len(g.drivers) {
		return nil
	}
	return g.drivers[i]
}

// Generate submits r to the least loaded engine; see Driver.Generate.
func (g *Group) Generate(ctx context.Context, r simengine.Request) (*Stream, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.drivers[g.pick(time.Now())].Generate(ctx, r)
}

// pick takes the engine with the least of: the requests sent there, or those
// that it last showed if they are more, and a penalty for a queue in front of a
// KV cache that is more than half full. Ties go to the first from a start that
// moves on with each request (get_core_engine_for_request in
// v1/engine/core_client.py). The lock is held.
func (g *Group) pick(now time.Time) int {
	if now.Sub(g.asked) >= snapshotAge {
		g.asked = now
		for i, d := range g.drivers {
			s := d.Stats()
			g.seen[i] = counts{s.Waiting, s.Running, s.KVUsage}
		}
	}
	best, least := 0, 0.0
	for i := range g.drivers {
		rank := (g.first + i) % len(g.drivers)
		c := g.seen[rank]
		score := float64(max(g.drivers[rank].inFlight(), c.waiting+c.running)) + float64(c.waiting)*6*max(0, c.usage-0.5)
		if i == 0 || score < least {
			best, least = rank, score
		}
	}
	g.seen[best].waiting++
	g.first = (g.first + 1) % len(g.drivers)
	return best
}

// Config returns the engines' configuration.
func (g *Group) Config() simengine.Config { return g.drivers[0].Config() }

// Stats sums up what the engines showed; KVUsage is their mean. It has no
// histograms: those are an engine's own.
func (g *Group) Stats() simengine.Stats {
	var sum simengine.Stats
	for _, d := range g.drivers {
		s := d.Stats()
		sum.Running += s.Running
		sum.Waiting += s.Waiting
		sum.Deferred += s.Deferred
		sum.KVUsage += s.KVUsage / float64(len(g.drivers))
		sum.PrefixQueries += s.PrefixQueries
		sum.PrefixHits += s.PrefixHits
		sum.PromptTokens += s.PromptTokens
		sum.PromptTokensCached += s.PromptTokensCached
		sum.GenerationTokens += s.GenerationTokens
		sum.Preemptions += s.Preemptions
		sum.FinishedStop += s.FinishedStop
		sum.FinishedLength += s.FinishedLength
		sum.Aborted += s.Aborted
		sum.Steps += s.Steps
		sum.Evictions += s.Evictions
	}
	return sum
}

// ResetPrefixCache resets that of all engines, and tells whether all could.
func (g *Group) ResetPrefixCache() bool {
	all := true
	for _, d := range g.drivers {
		all = d.ResetPrefixCache() && all
	}
	return all
}

// Pause is Driver.Pause of all.
func (g *Group) Pause() { g.each((*Driver).Pause) }

// Resume is Driver.Resume of all.
func (g *Group) Resume() { g.each((*Driver).Resume) }

// SlowBy is Driver.SlowBy of all.
func (g *Group) SlowBy(factor float64) { g.each(func(d *Driver) { d.SlowBy(factor) }) }

// Restart is Driver.Restart of all: they fall together with their API server.
func (g *Group) Restart() { g.each((*Driver).Restart) }

// Sleep is Driver.Sleep of all.
func (g *Group) Sleep(level int, mode simengine.PauseMode) error {
	for _, d := range g.drivers {
		if err := d.Sleep(level, mode); err != nil {
			return err // the level or the mode, and so of the first
		}
	}
	return nil
}

// Wake is Driver.Wake of all.
func (g *Group) Wake() { g.each((*Driver).Wake) }

// Asleep is Driver.Asleep: they sleep together.
func (g *Group) Asleep() (level int, asleep bool) { return g.drivers[0].Asleep() }

func (g *Group) each(do func(*Driver)) {
	for _, d := range g.drivers {
		do(d)
	}
}
