package caddyllm

import (
	"cmp"
	"slices"
	"sync"
)

// users are the policies of a state that are in a loaded config, for those who
// look: they know which upstreams a request would be offered.
type users struct {
	mu  sync.Mutex // guards all
	all []*upstreams
}

func (s *users) join(u *upstreams) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, u)
}

func (s *users) leave(u *upstreams) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(other *upstreams) bool { return other == u })
}

// newest is the policy that joined last, nil if there is none.
func (s *users) newest() *LLMPrefix {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return nil
	}
	return s.all[len(s.all)-1].policy
}

// scraping reports whether any of the policies asks for upstreams' metrics.
func (s *users) scraping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.all, (*upstreams).scraping)
}

// members are the upstreams of all policies together, by address. One that any
// proxy may use counts as available, and one that any asks as scraped.
func (s *users) members() []member {
	s.mu.Lock()
	all := slices.Clone(s.all)
	s.mu.Unlock()
	var found []member
	for _, u := range all {
		found = append(found, u.members()...)
	}
	slices.SortFunc(found, func(a, b member) int { return cmp.Compare(a.dial, b.dial) })
	kept := found[:0]
	for _, m := range found {
		if n := len(kept); n > 0 && kept[n-1].dial == m.dial {
			kept[n-1].available = kept[n-1].available || m.available
			kept[n-1].scraped = kept[n-1].scraped || m.scraped
			continue
		}
		kept = append(kept, m)
	}
	return kept
}
