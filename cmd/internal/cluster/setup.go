package cluster

import (
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/rivals"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/workload"
	"github.com/caddyllm/caddy-llm-prefix/simengine/virtual"
)

func (s *sim) setUp(maker Maker) error {
	c := &s.cfg
	n := c.Replicas + s.scenario.spare
	s.clock = virtual.New(c.Seed, s)
	for i := range n {
		r := &replica{cfg: c.Engine, joined: i < c.Replicas, healthy: i < c.Replicas}
		s.replicas = append(s.replicas, r)
	}
	if s.scenario.begin != nil {
		s.scenario.begin(s.replicas)
	}
	for i, r := range s.replicas {
		if _, err := s.clock.Add(r.cfg); err != nil {
			return err
		}
		if i < c.Replicas {
			r.start(0)
		}
	}
	for p := range c.Proxies {
		policy, err := maker(rivals.Env{Upstreams: n, Seed: c.Seed*1_000_003 + uint64(p), BlockTokens: c.Engine.BlockSize, Truth: truth{s}})
		if err != nil {
			return err
		}
		s.proxies = append(s.proxies, proxy{policy: policy, pages: make([]*rivals.Page, n)})
		if hears, ok := policy.(rivals.Listener); ok {
			s.proxies[p].hears = hears
			s.clock.TellTokens() // which costs as much as the rest of a replay
		}
		for u := range n {
			s.plan(time.Duration(s.rng.Int64N(int64(s.scrapeEvery(p)))), scrape, p, u)
		}
	}
	span := float64(s.load.Span) * s.stretch
	for i, st := range s.scenario.steps {
		s.plan(time.Duration(st.at*span), change, i, 0)
	}
	s.plan(healthEvery, health, 0, 0)
	s.arrivals()
	return nil
}

// arrivals plans when sessions and, in an open loop, turns come.
func (s *sim) arrivals() {
	for i := range s.load.Sessions {
		session := &s.load.Sessions[i]
		at := time.Duration(float64(session.Start) * s.stretch)
		for t := range session.Turns {
			if !s.fits(&session.Turns[t]) {
				break // and so would no later one
			}
			if t > 0 && s.load.Closed {
				s.left++
				continue
			}
			at += time.Duration(float64(session.Turns[t].Gap) * s.stretch)
			s.left++
			s.come(at, i, t)
		}
	}
}

// fits tells whether engines accept a prompt.
func (s *sim) fits(t *workload.Turn) bool { return t.Prompt < s.cfg.Engine.MaxModelLen }

// come plans the arrival of a request.
func (s *sim) come(at time.Duration, session, turn int) {
	j := job{session: int32(session), turn: int32(turn), sent: at, up: -1, cached: -1}
	switch {
	case s.cfg.Proxies == 1:
	case s.cfg.Split:
		j.proxy = int32(s.rng.IntN(s.cfg.Proxies))
	default:
		if n := s.load.Sessions[session].Conversation; n > 0 {
			session = n
		}
		j.proxy = int32(session % s.cfg.Proxies)
	}
	s.jobs = append(s.jobs, j)
	s.plan(at, arrive, len(s.jobs)-1, 0)
}
