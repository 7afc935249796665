// Package cluster replays a workload on engines and proxies in virtual time: a
// run of an hour takes seconds, and the same seed gives the same result to the
// last bit.
//
// Run is the whole of it. config.go says what a cluster is, sim.go has the
// loop, replica.go an engine with what can happen to it, scenario.go what does.
// Policies are those of package rivals; each proxy has one of its own.
//
// The way between client, proxy and engine takes no time; what an engine spends
// on a request outside of its steps is in its cost.
package cluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/rivals"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Defaults of Config.
const (
	DefaultReplicas       = 8
	DefaultScrapeInterval = time.Second
	DefaultScrapeDelay    = 5 * time.Millisecond
	DefaultWarmup         = 0.1
)

// Config is a cluster and how its proxies are set up.
type Config struct {
	Replicas int // engines at the beginning; default 8
	Engine   simengine.Config
	Proxies  int // default 1
	// Split sends each request to any proxy; else all of a conversation go to one.
	Split bool
	// ScrapeInterval is the time between two looks of a proxy at an engine's
	// metrics; default 1 s. ScrapeDelay is how old a page is when it is read;
	// default 5 ms.
	ScrapeInterval, ScrapeDelay time.Duration
	// Rate is in requests a second; zero is the workload's own.
	Rate     float64
	Scenario Scenario
	Seed     uint64
	// Warmup is the share of requests (closed loop: of the time in which
	// sessions start, at least 0.3) that isn't counted; default 0.1.
	Warmup float64
	// InFlightMax ends a run, with Outcome.Overloaded, when so many requests
	// are in flight; zero is no bound.
	InFlightMax int
	// TTFTMax likewise ends a run when the sum of TTFTs is what all requests
	// together would have with this mean; zero is no bound.
	TTFTMax time.Duration
}

func (c Config) withDefaults() Config {
	if c.Replicas == 0 {
		c.Replicas = DefaultReplicas
	}
	if c.Proxies == 0 {
		c.Proxies = 1
	}
	if c.ScrapeInterval == 0 {
		c.ScrapeInterval = DefaultScrapeInterval
	}
	if c.ScrapeDelay == 0 {
		c.ScrapeDelay = DefaultScrapeDelay
	}
	if c.Warmup == 0 {
		c.Warmup = DefaultWarmup
	}
	c.Engine = c.Engine.WithDefaults()
	return c
}

func (c *Config) validate() error {
	switch {
	case c.Replicas < 1 || c.Replicas > 4096:
		return fmt.Errorf("%d replicas, want 1 to 4096", c.Replicas)
	case c.Proxies < 1 || c.Proxies > 64:
		return fmt.Errorf("%d proxies, want 1 to 64", c.Proxies)
	case c.ScrapeInterval < 10*time.Millisecond:
		return errors.New("scrapes come at most every 10ms")
	case c.Rate < 0:
		return errors.New("the rate is negative")
	case c.Warmup < 0 || c.Warmup >= 1:
		return errors.New("the warm-up is a share below 1")
	}
	return c.Engine.Validate()
}

// Maker makes a proxy's policy.
type Maker func(rivals.Env) (rivals.Policy, error)

// Named is the Maker of a policy by name.
func Named(name string) Maker {
	return func(env rivals.Env) (rivals.Policy, error) { return rivals.New(name, env) }
}
