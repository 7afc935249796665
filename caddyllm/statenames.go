package caddyllm

import (
	"cmp"
	"slices"
)

// namedState is a state and the one name that nobody else has.
type namedState struct {
	name  string
	state *state
}

// namedStates lists all states that policies use now, by name.
func namedStates() []namedState {
	var all []*state
	states.Range(func(_, v any) bool { // under the pool's lock: only gather
		all = append(all, v.(*state))
		return true
	})
	return unique(all)
}

// unique gives each state a name. Of those of one name and unlike shapes, which
// a reload makes, all but the first by key are called by their keys; and as a
// name may look like a key, a mark tells them apart.
func unique(all []*state) []namedState {
	slices.SortFunc(all, func(a, b *state) int { return cmp.Compare(a.key, b.key) })
	named := make([]namedState, 0, len(all))
	taken := make(map[string]bool)
	for _, s := range all {
		name := s.name
		if taken[name] {
			name = s.key
		}
		for taken[name] {
			name += "'"
		}
		taken[name] = true
		named = append(named, namedState{name, s})
	}
	return named
}
