package cluster

import (
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/rivals"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// replica is an engine and its place in the cluster.
type replica struct {
	engine  *simengine.Engine
	cfg     simengine.Config
	started time.Duration
	joined  bool // proxies have it in their pool
	process bool // it runs
	reached bool // proxies can connect to it
	healthy bool // proxies think so
	lies    lies // about its metrics
	stopped rivals.Page
	inside  map[uint64]bool // attempts in the engine
}

// lies are what is wrong with a metrics page.
type lies struct {
	missing  bool
	frozen   bool    // it stays what it was
	zero     bool    // everything but the capacity is 0
	idle     bool    // it claims to have nothing to do
	capacity float64 // told over true; 0 is right
}

func (r *replica) start(now time.Duration) error {
	e, err := simengine.New(r.cfg)
	if err != nil {
		return err
	}
	r.engine, r.started, r.process, r.reached = e, now, true, true
	r.inside = make(map[uint64]bool)
	return nil
}

// page is what a scrape gets now; nil if nothing.
func (r *replica) page() *rivals.Page {
	if !r.process || !r.reached || r.lies.missing {
		return nil
	}
	s := r.engine.Stats()
	p := rivals.Page{
		Waiting: s.Waiting, Running: s.Running, KVUsage: s.KVUsage,
		CapacityTokens: float64(r.cfg.KVTokens()), BlockTokens: float64(r.cfg.BlockSize),
		PrefixHits: float64(s.PrefixHits), PrefixQueries: float64(s.PrefixQueries),
		PromptTokens: float64(s.PromptTokens), OutputTokens: float64(s.GenerationTokens),
		Preemptions: float64(s.Preemptions), StartTime: r.started.Seconds(),
	}
	if r.lies.capacity > 0 {
		p.CapacityTokens *= r.lies.capacity
	}
	switch {
	case r.lies.frozen:
		if r.stopped.CapacityTokens == 0 {
			r.stopped = p
		}
		p = r.stopped
	case r.lies.zero:
		p = rivals.Page{CapacityTokens: p.CapacityTokens, BlockTokens: p.BlockTokens}
	case r.lies.idle:
		p.Waiting, p.Running, p.KVUsage = 0, 0, 0
	}
	return &p
}
