package route

import (
	"cmp"
	"slices"
	"time"
)

// Upstream is what is known of one, for metrics and status.
type Upstream struct {
	ID       string
	Prefill  int // own requests without a first token
	Decode   int // own requests with one
	Load     Load
	LoadAge  time.Duration // of Load; 0 unless Scraped
	Scraped  bool          // a page was read since the upstream is known
	Fresh    bool          // Load is new enough to count, and doesn't stand still
	State    State         // of Load and of the engine, in a word
	Rate     float64       // prefill tokens per second, learned
	Queued   float64       // predicted seconds until a request sent now is begun
	Entries  int           // blocks believed to be in its prefix cache
	Capacity int           // blocks that its prefix cache is believed to hold
	Failures int           // in a row
}

// Index is what the prefix index of all upstreams takes, for metrics and status.
type Index struct {
	Entries int   // blocks that upstreams are believed to hold, each counted for each upstream
	Bytes   int64 // memory taken; it is kept when entries go
	Bound   int64 // bytes
	// Entries that gave way to others: at the size of their upstream's cache,
	// and at Bound. The latter may still be in the upstream's cache.
	EvictedByCache  uint64
	EvictedByMemory uint64
}

// Index returns what the prefix index takes.
func (r *Router) Index() Index {
	evicted := r.index.Evicted()
	return Index{
		Entries: r.index.Len(), Bytes: r.index.Bytes(), Bound: r.memoryBytes,
		EvictedByCache: evicted.Cap, EvictedByMemory: evicted.Memory,
	}
}

// Snapshot returns what is known of each upstream, by ID.
func (r *Router) Snapshot(at time.Time) []Upstream {
	now := r.clock.at(at)
	r.sweep(now)
	all := make([]Upstream, 0, len(r.slots))
	r.judgeRates(now)
	for _, u := range r.upstreams {
		if u == nil {
			continue
		}
		u.drain(now, u.rate, r.flights)
		u.watch(now, u.rate)
		u.hear(now, r.flights)
		var brought others
		if u.known(now) {
			brought = u.brought
		}
		state := u.state(now)
		ahead, step, _ := u.turn(now, 1/u.rate, r.apart.share(), r.flights)
		view := Upstream{
			ID:       u.id,
			Prefill:  len(u.queue),
			Decode:   u.answering,
			Load:     u.load,
			Scraped:  u.scraped != never,
			Fresh:    state == StateFresh,
			State:    state,
			Rate:     u.rate,
			Queued:   (ahead+brought.waiting*r.answers.work)/u.rate + step,
			Entries:  r.index.Held(u.slot),
			Capacity: r.capacityBlocks(u),
			Failures: int(u.failures),
		}
		if view.Scraped {
			view.LoadAge = max(now-u.scraped, 0)
		}
		all = append(all, view)
	}
	slices.SortFunc(all, func(a, b Upstream) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Terms are what one target would cost a request, in seconds where not said
// otherwise: Cost = Queue + Prefill + Stall - Copy +
// Memory + Step.
type Terms struct {
	ID            string
	PromptTokens  int
	MatchedTokens int     // of these, believed to be cached
	MatchedBlocks int     // leading blocks of the chain
	Queue         float64 // work before this request
	Prefill       float64 // the request's own work
	Stall         float64 // what it takes from those that decode there, join the same step, or come from peers
	Copy          float64 // what a copy of a popular prefix there is worth
	Memory        float64 // until there is room for its KV blocks
	Step          float64 // until the step in progress ends
	Cost          float64
	First         float64 // predicted time to the first token: Queue + Prefill + Memory + Step
	Tried         bool    // tried before: last of all
	Last          bool    // suspect: only before those tried
}

// Explain returns the terms that Pick would compare now, in the targets'
// order. It reserves nothing and teaches nothing.
func (r *Router) Explain(at time.Time, q *Request, targets []Target) []Terms {
	all, _ := r.explain(r.clock.at(at), q, targets)
	return all
}

func (r *Router) explain(now time.Duration, q *Request, targets []Target) ([]Terms, outlook) {
	if len(targets) == 0 {
		return nil, outlook{}
	}
	r.meet(now, targets, false)
	o := r.weigh(now, q, targets)
	all := make([]Terms, len(targets))
	var t terms
	for i := range r.candidates {
		c := &r.candidates[i]
		r.terms(now, c, &o, &t)
		all[i] = Terms{
			ID:            c.up.id,
			PromptTokens:  int(t.prompt),
			MatchedTokens: int(t.matched),
			MatchedBlocks: int(c.blocks),
			Queue:         t.ahead / c.up.rate,
			Prefill:       t.work / c.up.rate,
			Stall:         t.stalls + t.delay,
			Copy:          (t.work - t.worth) / c.up.rate,
			Memory:        t.memory,
			Step:          t.step,
			Cost:          t.cost,
			First:         t.first,
			Tried:         c.rank == tried,
			Last:          c.rank == suspect,
		}
	}
	return all, o
}
