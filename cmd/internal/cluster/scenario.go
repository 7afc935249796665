package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Scenario is what happens to a cluster, by name; the empty one is none.
type Scenario string

// scenario is its parts.
type scenario struct {
	name  Scenario
	about string
	spare int                  // engines that join later
	begin func(all []*replica) // what is wrong from the start
	steps []step
}

// step is a change at a share of the time in which sessions start.
type step struct {
	at   float64
	what func(s *sim, now time.Duration) error
}

// down is how long a restart or a flap takes.
const (
	restartTakes = 20 * time.Second
	flapTakes    = 3 * time.Second
	flapEvery    = 15 * time.Second
)

// Scenarios lists names with what they mean.
func Scenarios() [][2]string {
	var all [][2]string
	for _, s := range scenarios {
		all = append(all, [2]string{string(s.name), s.about})
	}
	return all
}

// Validate tells whether there is such a scenario.
func (n Scenario) Validate() error {
	if _, ok := n.find(); !ok {
		var known []string
		for _, s := range scenarios {
			known = append(known, string(s.name))
		}
		return fmt.Errorf("unknown scenario %q, known are %s", n, strings.Join(known, ", "))
	}
	return nil
}

func (n Scenario) find() (scenario, bool) {
	if n == "" {
		return scenario{}, true
	}
	i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == n })
	if i < 0 {
		return scenario{}, false
	}
	return scenarios[i], true
}

func wrong(l lies, which func(i int) bool) func([]*replica) {
	return func(all []*replica) {
		for i, r := range all {
			if which(i) {
				r.lies = l
			}
		}
	}
}

func everyone(int) bool    { return true }
func firstOnly(i int) bool { return i == 0 }

var scenarios = []scenario{
	{name: "join", about: "a cold engine more at half of the time", spare: 1, steps: []step{
		{0.5, func(s *sim, now time.Duration) error {
			r := s.replicas[len(s.replicas)-1]
			r.joined, r.healthy = true, true
			r.start(now)
			return nil
		}},
	}},
	{name: "die", about: "one engine is gone from 40 to 70 % of the time, and comes back cold", steps: []step{
		{0.4, func(s *sim, now time.Duration) error { return s.kill(now, 0) }},
		{0.7, func(s *sim, now time.Duration) error { s.replicas[0].start(now); return nil }},
	}},
	{name: "slow", about: "one engine takes twice the time for everything", begin: func(all []*replica) {
		c := &all[0].cfg.Cost
		c.Base *= 2
		c.PrefillToken *= 2
		c.DecodeSeq *= 2
		c.ContextToken *= 2
		c.Experts *= 2
		c.AttentionTerm *= 2
	}},
	{name: "restart", about: "one engine restarts at half of the time: 20 s away, then cold", steps: []step{
		{0.5, func(s *sim, now time.Duration) error {
			s.plan(now+restartTakes, change, startFirst, 0)
			return s.kill(now, 0)
		}},
	}},
	{name: "flap", about: "one engine can't be reached for 3 s in every 15; what it works on goes on", steps: []step{
		{0, func(s *sim, now time.Duration) error { s.plan(now+flapEvery, change, flapFirst, 0); return nil }},
	}},
	{name: "metrics-missing", about: "no metrics page can be had", begin: wrong(lies{missing: true}, everyone)},
	{name: "metrics-frozen", about: "pages stay as they were at the first scrape", begin: wrong(lies{frozen: true}, everyone)},
	{name: "metrics-zero", about: "pages say 0 of everything but the capacity", begin: wrong(lies{zero: true}, everyone)},
	{name: "metrics-lying", about: "one engine claims to be idle", begin: wrong(lies{idle: true}, firstOnly)},
	{name: "usage-missing", about: "no answer tells of its tokens, as streams whose clients don't ask for it", begin: func(all []*replica) {
		for _, r := range all {
			r.silent = true
		}
	}},
	{name: "capacity-quarter", about: "pages tell a quarter of the capacity", begin: wrong(lies{capacity: 0.25}, everyone)},
	{name: "capacity-half", about: "pages tell half of the capacity", begin: wrong(lies{capacity: 0.5}, everyone)},
	{name: "capacity-double", about: "pages tell twice the capacity", begin: wrong(lies{capacity: 2}, everyone)},
	{name: "capacity-fourfold", about: "pages tell four times the capacity", begin: wrong(lies{capacity: 4}, everyone)},
}

// Changes that scenarios plan as they go; those planned at the start count
// from 0.
const (
	startFirst = -1 - iota
	flapFirst
	reachFirst
)

func (s *sim) change(now time.Duration, which int) error {
	switch which {
	case startFirst:
		s.replicas[0].start(now)
		return nil
	case flapFirst:
		s.replicas[0].reached = false
		s.plan(now+flapTakes, change, reachFirst, 0)
		s.plan(now+flapEvery, change, flapFirst, 0)
		return nil
	case reachFirst:
		s.replicas[0].reached = true
		return nil
	}
	return s.scenario.steps[which].what(s, now)
}
