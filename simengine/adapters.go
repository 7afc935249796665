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

// occupySlots notes the adapters of those that are in the step to compose.
func (e *Engine) occupySlots() {
	e.adapters = e.adapters[:0]
	if e.cfg.MaxLoRAs == 0 || e.adapted == 0 {
		return
	}
	for _, s := range e.running {
		if s.chunk > 0 || s.folded {
			e.occupySlot(s)
		}
	}
}

func (e *Engine) occupySlot(s *sequence) {
	if e.cfg.MaxLoRAs > 0 && s.Adapter != "" && !slices.Contains(e.adapters, s.Adapter) {
		e.adapters = append(e.adapters, s.Adapter)
	}
}

// hasSlot tells whether the step has room for the adapter of s.
func (e *Engine) hasSlot(s *sequence) bool {
	return e.cfg.MaxLoRAs == 0 || s.Adapter == "" || len(e.adapters) < e.cfg.MaxLoRAs || slices.Contains(e.adapters, s.Adapter)
}

// deferIt notes that s was passed over, which holds until it is let in, though
// it may be something else by then that it waits for; so does vLLM.
func (e *Engine) deferIt(s *sequence, deferred bool) {
	if s.deferred == deferred {
		return
	}
	s.deferred = deferred
	if deferred {
		e.deferred++
	} else {
		e.deferred--
	}
}
