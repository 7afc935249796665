package cluster

import (
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/rivals"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// replica is an engine and its place in the cluster.
type replica struct {
	cfg     simengine.Config
	started time.Duration
	joined  bool // proxies have it in their pool
	process bool // it runs
	reached bool // proxies can connect to it
	healthy bool // proxies think so
	lies    lies // about its metrics
	silent  bool // its answers tell nothing of their tokens
	stopped rivals.Page
}

// lies are what is wrong with a metrics page.
type lies struct {
	missing  bool
	frozen   bool    // it stays what it was
	zero     bool    // everything but the capacity is 0
	idle     bool    // it claims to have nothing to do
	capacity float64 // told over true; 0 is right
}

func (r *replica) start(now time.Duration) { r.started, r.process, r.reached = now, true, true }

// page is what a scrape of an engine gets now; nil if nothing.
func (s *sim) page(engine int) *rivals.Page {
	r := s.replicas[engine]
	if !r.process || !r.reached || r.lies.missing {
		return nil
	}
	stats := s.clock.Stats(engine)
	p := rivals.Page{
		Waiting: stats.Waiting, Running: stats.Running, KVUsage: stats.KVUsage,
		CapacityTokens: float64(r.cfg.KVTokens()), BlockTokens: float64(r.cfg.BlockSize),
		PrefixHits: float64(stats.PrefixHits), PrefixQueries: float64(stats.PrefixQueries),
		PromptTokens: float64(stats.PromptTokens), OutputTokens: float64(stats.GenerationTokens),
		Preemptions: float64(stats.Preemptions), StartTime: r.started.Seconds(),
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
