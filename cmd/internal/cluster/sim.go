package cluster

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/rivals"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/workload"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/virtual"
)

// healthEvery is how often proxies look whether an engine answers, as Caddy's
// active health checks do.
const healthEvery = time.Second

// sim is a run.
type sim struct {
	cfg      Config
	load     *workload.Workload
	scenario scenario
	stretch  float64 // of the times at which sessions start

	replicas []*replica
	proxies  []proxy
	clock    *virtual.Sim // with the engines, by number of replica
	now      time.Duration
	failure  error
	rng      *rand.Rand

	jobs     []job
	attempts []int32 // job by attempt
	inFlight int
	left     int // jobs that are yet to end
	targets  []rivals.Target
	request  rivals.Request
	waited   time.Duration // sum of TTFTs
	requests int           // of the whole workload
	over     bool
}

type proxy struct {
	policy rivals.Policy
	hears  rivals.Listener // the policy, if it is one
	pages  []*rivals.Page  // taken and not read yet, by engine
}

// job is one request of the workload and what became of it.
type job struct {
	session, turn int32
	proxy, up     int32
	attempt       uint64
	tries         uint64 // bits of engines that failed it; those from 63 on share one
	sent          time.Duration
	first, end    time.Duration // 0 while it has none
	cached        int32
	started       bool
	failed        bool
	done          bool
}

func (j *job) tried(engine int) { j.tries |= 1 << min(engine, 63) }

// Run replays a workload under one policy.
func Run(w *workload.Workload, c Config, maker Maker) (*Outcome, error) {
	c = c.withDefaults()
	if w.KVTokens > 0 {
		c.Engine.Blocks = c.Engine.BlocksFor(w.KVTokens)
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("replaying: %w", err)
	}
	s := &sim{cfg: c, load: w, requests: w.Requests(), stretch: 1, rng: rand.New(rand.NewPCG(c.Seed, 0x51))}
	if c.Rate > 0 {
		s.stretch = w.Rate() / c.Rate
	}
	var ok bool
	if s.scenario, ok = c.Scenario.find(); !ok {
		return nil, c.Scenario.Validate()
	}
	if err := s.setUp(maker); err != nil {
		return nil, fmt.Errorf("replaying: %w", err)
	}
	if err := s.run(); err != nil {
		return nil, fmt.Errorf("replaying: %w", err)
	}
	return s.outcome(), nil
}

// run runs until all requests have ended.
func (s *sim) run() error {
	if s.left == 0 {
		return nil
	}
	s.clock.Run(math.MaxInt64)
	if s.failure == nil && s.left > 0 && !s.over {
		return fmt.Errorf("nothing happens any more, and %d requests are left", s.left)
	}
	return s.failure
}

func (s *sim) happen(k kind, a, b int) error {
	switch k {
	case arrive:
		return s.send(a)
	case scrape:
		s.proxies[a].pages[b] = nil
		if s.replicas[b].joined {
			s.proxies[a].pages[b] = s.page(b)
			s.plan(s.now+s.cfg.ScrapeDelay, deliver, a, b)
		}
		// A twentieth of jitter, so that no two proxies stay in step.
		next := float64(s.scrapeEvery(a)) * (0.95 + 0.1*s.rng.Float64())
		s.plan(s.now+time.Duration(next), scrape, a, b)
	case deliver:
		p := &s.proxies[a]
		p.policy.Scraped(s.now, b, p.pages[b])
	case health:
		for _, r := range s.replicas {
			r.healthy = r.joined && r.process && r.reached
		}
		s.plan(s.now+healthEvery, health, 0, 0)
	case change:
		return s.change(s.now, a)
	}
	return nil
}

// scrapeEvery is the time between a proxy's scrapes of an engine.
func (s *sim) scrapeEvery(proxy int) time.Duration {
	if own, ok := s.proxies[proxy].policy.(rivals.Scraper); ok {
		if every := own.ScrapeEvery(s.now, s.cfg.ScrapeInterval); every > 0 {
			return every
		}
	}
	return s.cfg.ScrapeInterval
}

// heard tells the proxies what a step of an engine brought.
func (s *sim) heard(outputs []simengine.Output) {
	told := uint64(0) // proxies, by bit
	for i := range outputs {
		o := &outputs[i]
		j := &s.jobs[s.attempts[o.ID]]
		if !o.First && !o.Finished {
			if bit := uint64(1) << (j.proxy & 63); told&bit == 0 {
				told |= bit
				if p := s.proxies[j.proxy].hears; p != nil {
					p.Token(s.now, o.ID)
				}
			}
			continue
		}
		if j.attempt != o.ID || o.Reason == simengine.ReasonAbort {
			continue
		}
		p := s.proxies[j.proxy].policy
		if o.First {
			j.first, j.cached = s.now, int32(o.CachedTokens)
			s.waited += s.now - j.sent
			s.over = s.over || s.cfg.TTFTMax > 0 && s.waited > s.cfg.TTFTMax*time.Duration(s.requests)
			p.FirstToken(s.now, o.ID)
		}
		if o.Finished {
			usage := &rivals.Usage{PromptTokens: o.PromptTokens, OutputTokens: o.GeneratedTokens, CachedTokens: o.CachedTokens}
			if s.replicas[j.up].silent {
				usage = nil
			}
			p.End(s.now, o.ID, rivals.Completed, usage)
			s.ended(j)
		}
	}
}

// ended lets a session go on.
func (s *sim) ended(j *job) {
	j.end, j.done = s.now, true
	s.inFlight--
	s.left--
	if !s.load.Closed {
		return
	}
	session, next := int(j.session), int(j.turn)+1
	turns := s.load.Sessions[session].Turns
	if next < len(turns) && s.fits(&turns[next]) {
		s.come(s.now+turns[next].Gap, session, next)
	}
}

// kill ends an engine's process: what it works on is lost, and what has no
// first token yet is sent elsewhere.
func (s *sim) kill(now time.Duration, engine int) error {
	s.replicas[engine].process = false
	lost := s.clock.Restart(engine)
	slices.Sort(lost)
	for _, id := range lost {
		n := s.attempts[id]
		j := &s.jobs[n]
		s.proxies[j.proxy].policy.End(now, j.attempt, rivals.Failed, nil)
		if j.first > 0 {
			j.failed = true
			s.ended(j)
			continue
		}
		j.tried(engine)
		if err := s.send(int(n)); err != nil {
			return err
		}
	}
	return nil
}
