package enginemetrics

import "github.com/caddyllm/caddy-llm-prefix/caddyllm/route"

// Engines and models of one page. A page with more series of one name leaves
// that number unknown, as a sum over a part would look like a short queue.
const maxSeries = 1024

// Numbers past these bounds are unknown, not clamped: an upstream must neither
// draw all requests for a number that can't be true nor be shunned for it.
const (
	maxCount = 1e7  // requests in a queue
	maxTotal = 1e18 // a counter; some 30,000 years of 1e6 tokens a second
	// Some engines count what they are about to allocate.
	maxUsage = 1.05
)

// reading is a number that may be malformed.
type reading struct {
	v  float64
	ok bool
}

// tally gathers the series of one name. Copies of a number count once, at
// their largest: a page that contradicts itself shall not make a queue look
// shorter.
type tally struct {
	groups []group
	bad    bool
}

type group struct {
	key uint64
	v   float64
}

func (t *tally) reset() { t.groups, t.bad = t.groups[:0], false }

func (t *tally) add(key uint64, r reading, f field) {
	if t.bad || !r.ok || !plausible(r.v, f) {
		t.bad = true
		return
	}
	for i := range t.groups {
		if t.groups[i].key == key {
			t.groups[i].v = max(t.groups[i].v, r.v)
			return
		}
	}
	if len(t.groups) == maxSeries {
		t.bad = true
		return
	}
	t.groups = append(t.groups, group{key, r.v})
}

func plausible(v float64, f field) bool {
	limit := maxTotal
	switch f {
	case waiting, waitingElse, running:
		limit = maxCount
	case usage, usageOld:
		limit = maxUsage
	}
	return v >= 0 && v <= limit
}

func (t *tally) seen() bool { return t.bad || len(t.groups) > 0 }

func (t *tally) sum() route.Num {
	if t.bad || len(t.groups) == 0 {
		return route.Num{}
	}
	var sum float64
	for _, g := range t.groups {
		sum += g.v
	}
	return route.Known(sum)
}

func (t *tally) max() route.Num {
	if t.bad || len(t.groups) == 0 {
		return route.Num{}
	}
	var most float64
	for _, g := range t.groups {
		most = max(most, g.v)
	}
	return route.Known(most)
}

// finish tells what was gathered: of the engine whose queue is known, or else
// of the first one that has any name on the page. Names without a prefix are an
// engine's only where no engine's own are: a gateway in front may have the same,
// and an engine whose queue can't be read must not pass for idle by them.
func (p *parser) finish() Page {
	for d := range dialects {
		t := &p.tallies[d]
		named := false
		for f := range t {
			named = named || t[f].seen()
		}
		if !named || isBare(d) && (p.prefixed || !t[waiting].seen() || !t[running].seen()) {
			continue
		}
		load := loadOf(t)
		load.StartTime = p.start.max()
		if p.page.Engine == "" || p.page.Load.Empty() && !load.Empty() {
			p.page.Engine, p.page.Load = dialects[d].engine, load
		}
	}
	return p.page
}

// loadOf puts one engine's numbers together.
func loadOf(t *[fieldCount]tally) route.Load {
	block := t[blockTokens].max()
	l := route.Load{
		Waiting:        t[waiting].sum(),
		Running:        t[running].sum(),
		KVUsage:        first(t, usage, usageOld).max(),
		CapacityTokens: or(t[capacity].sum(), times(t[blocks].sum(), block)),
		BlockTokens:    block,
		PrefixHits:     or(first(t, hits, hitsOld).sum(), times(t[hitBlocks].sum(), block)),
		PrefixQueries: or(first(t, queries, queriesOld).sum(),
			times(plus(t[hitBlocks].sum(), t[missBlocks].sum()), block)),
		PromptTokens: first(t, promptTokens, freshTokens).sum(),
		OutputTokens: t[outputTokens].sum(),
		Preemptions:  t[preemptions].sum(),
		PrefixCache:  t[prefixCache].max(),
		Awake:        t[awake].max(),
	}
	if t[waitingElse].seen() {
		l.Waiting = plus(l.Waiting, t[waitingElse].sum())
	}
	if t[freshTokens].seen() && t[hits].seen() {
		l.PromptTokens = plus(l.PromptTokens, l.PrefixHits)
	}
	if t[usedTokens].seen() {
		l.KVUsage = share(t[usedTokens].sum(), l.CapacityTokens)
	}
	l.KVUsage.Value = min(l.KVUsage.Value, 1)
	if !l.PrefixQueries.Known && l.PrefixHits.Known {
		l.PrefixQueries = l.PromptTokens
	}
	return l
}

// first is the first of several names for one thing that the page has. What it
// says counts even if that can't be read: a counter that is read off another
// name for one page would look like the one of another engine.
func first(t *[fieldCount]tally, fields ...field) *tally {
	for _, f := range fields {
		if t[f].seen() {
			return &t[f]
		}
	}
	return &t[fields[0]]
}

func or(ns ...route.Num) route.Num {
	for _, n := range ns {
		if n.Known {
			return n
		}
	}
	return route.Num{}
}

func plus(a, b route.Num) route.Num {
	if !a.Known || !b.Known {
		return route.Num{}
	}
	return route.Known(a.Value + b.Value)
}

func times(a, b route.Num) route.Num {
	if !a.Known || !b.Known {
		return route.Num{}
	}
	return route.Known(a.Value * b.Value)
}

func share(part, whole route.Num) route.Num {
	if !part.Known || !whole.Known || whole.Value <= 0 {
		return route.Num{}
	}
	return route.Known(part.Value / whole.Value)
}
