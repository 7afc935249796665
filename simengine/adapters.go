package simengine

import (
	"maps"
	"slices"
	"strings"
)

// showAdapters names the adapters of those that run and wait, for the snapshot.
// Engines whose requests have none don't look.
func (e *Engine) showAdapters() {
	e.stats.RunningAdapters, e.stats.WaitingAdapters = "", ""
	if e.adapted > 0 {
		e.stats.RunningAdapters = adaptersOf(e.running)
		e.stats.WaitingAdapters = adaptersOf(e.waiting.all())
	}
}

func adaptersOf(list []*sequence) string {
	names := make(map[string]struct{})
	for _, s := range list {
		if s.Adapter != "" {
			names[s.Adapter] = struct{}{}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ",")
}
