package route

import (
	"math"
	"time"
)

// others is load that a scrape shows and this proxy didn't bring.
type others struct {
	waiting float64 // requests
	running float64 // requests
}

// Bounds of belief in a scrape.
const (
	// staleAfter is how many scrape intervals a page counts, and at least
	// staleMin.
	staleAfter = 5
	staleMin   = 3 * time.Second
	staleMax   = 3 * time.Minute
	// frozenAfter is for how long, and frozenPages on how many pages in a row,
	// an engine is believed that claims work and never changes: one at work
	// moves its counters at every step. A page without counters may truly
	// stand still for longer.
	frozenAfter         = 10 * time.Second
	frozenAfterNoCounts = 30 * time.Second
	frozenPages         = 3
	// maxForeign bounds the requests that a page can make us believe in.
	maxForeign = 100_000
)

// Scraped tells what an upstream's metrics page said.
func (r *Router) Scraped(now time.Time, id string, l *Load) {
	u := r.upstream(now, id)
	page := sane(*l)
	if !u.scraped.IsZero() {
		if restarted(&u.load, &page) {
			u.restart()
			if u.slot >= 0 {
				r.index.Clear(u.slot)
			}
		}
		if d := now.Sub(u.scraped); d > 0 && u.interval > 0 {
			u.interval = (3*u.interval + d) / 4
		} else if d > 0 {
			u.interval = d
		}
	}
	if worked(&u.load, &page) {
		u.alive(now)
	}
	if u.scraped.IsZero() || moved(&u.load, &page) {
		u.movedAt, u.still = now, 0
	} else {
		u.still++
	}
	u.load, u.scraped = page, now
	u.foreign[1] = u.foreign[0]
	u.foreign[0] = others{
		waiting: excess(u.load.Waiting, u.peakPrefill),
		running: excess(u.load.Running, u.peakTotal),
	}
	// The page shows a moment since the last scrape, and any of what was in
	// flight since then may be in it.
	u.peakPrefill, u.peakTotal = len(u.queue), u.inFlight()
	if u.slot >= 0 {
		r.index.SetCap(u.slot, r.capacityBlocks(u))
	}
}

// ScrapeFailed tells that an upstream's page could not be had. What the last
// one said ages.
func (r *Router) ScrapeFailed(now time.Time, id string) { r.upstream(now, id) }

// sane makes unknown what can't be true.
func sane(l Load) Load {
	for _, n := range []*Num{
		&l.Waiting, &l.Running, &l.KVUsage, &l.CapacityTokens, &l.BlockTokens, &l.PrefixHits,
		&l.PrefixQueries, &l.PromptTokens, &l.OutputTokens, &l.Preemptions, &l.StartTime,
	} {
		if !(n.Value >= 0 && n.Value < 1<<53) { // NaN is neither
			*n = Num{}
		}
	}
	if l.KVUsage.Value > 1 {
		l.KVUsage = Num{}
	}
	return l
}

func excess(n Num, own int) float64 {
	if !n.Known {
		return 0
	}
	return min(max(n.Value-float64(own), 0), maxForeign)
}

// restarted reports whether the engine behind a page is another than before:
// it began later, or its counters went back.
func restarted(before, after *Load) bool {
	if before.StartTime.Known && after.StartTime.Known && math.Abs(after.StartTime.Value-before.StartTime.Value) > 1 {
		return true
	}
	back := func(b, a Num) bool { return b.Known && a.Known && a.Value < b.Value }
	return back(before.PromptTokens, after.PromptTokens) || back(before.OutputTokens, after.OutputTokens) ||
		back(before.PrefixQueries, after.PrefixQueries)
}

// worked reports whether the counters between two pages show that tokens were
// computed.
func worked(before, after *Load) bool {
	more := func(b, a Num) bool { return b.Known && a.Known && a.Value > b.Value }
	return more(before.PromptTokens, after.PromptTokens) || more(before.OutputTokens, after.OutputTokens)
}

func moved(before, after *Load) bool {
	return before.Waiting != after.Waiting || before.Running != after.Running || before.KVUsage != after.KVUsage ||
		before.PromptTokens != after.PromptTokens || before.OutputTokens != after.OutputTokens
}

func (u *upstream) restart() {
	u.foreign = [2]others{}
	u.failures, u.stalled, u.probed = 0, false, time.Time{}
	u.factor, u.audit = 1, audit{}
}

// fresh reports whether the last page still counts.
func (u *upstream) fresh(now time.Time) bool {
	if u.scraped.IsZero() || u.load.Empty() {
		return false
	}
	age := now.Sub(u.scraped)
	return age >= -staleMax && age <= min(max(staleAfter*u.interval, staleMin), staleMax)
}

// frozen reports whether the page claims work and doesn't move.
func (u *upstream) frozen(now time.Time) bool {
	if u.still < frozenPages || u.load.Waiting.Value+u.load.Running.Value == 0 {
		return false
	}
	still := now.Sub(u.movedAt)
	if u.load.PromptTokens.Known || u.load.OutputTokens.Known {
		return still > frozenAfter
	}
	return still > frozenAfterNoCounts
}

// brought is the load of others, and whether it is known. One scrape alone may
// catch requests of ours in a state that they have left, so the lesser of two
// is taken.
func (u *upstream) brought(now time.Time) (others, bool) {
	if !u.fresh(now) || u.frozen(now) {
		return others{}, false
	}
	return others{
		waiting: min(u.foreign[0].waiting, u.foreign[1].waiting),
		running: min(u.foreign[0].running, u.foreign[1].running),
	}, true
}

// guess reads what others bring to each candidate, and returns what they bring
// to one whose load is unknown: as much as to the mean of those that are known.
// An upstream that can't be seen must not look idle beside busy ones.
func (r *Router) guess(now time.Time) others {
	var sum others
	known := 0.0
	for i := range r.candidates {
		c := &r.candidates[i]
		if c.others, c.known = c.up.brought(now); c.known {
			sum.waiting += c.others.waiting
			sum.running += c.others.running
			known++
		}
	}
	if known == 0 {
		return others{}
	}
	return others{waiting: sum.waiting / known, running: sum.running / known}
}

// State says how much is known of an upstream's own queue.
type State string

const (
	StateUnknown  State = "unknown"  // no page was read, or one that tells nothing
	StateFresh    State = "fresh"    // the last page counts
	StateStale    State = "stale"    // the last page is too old to count
	StateDoubtful State = "doubtful" // the page or the engine stands still with work to do
)

func (u *upstream) state(now time.Time) State {
	switch {
	case u.stalled:
		return StateDoubtful
	case u.scraped.IsZero() || u.load.Empty():
		return StateUnknown
	case !u.fresh(now):
		return StateStale
	case u.frozen(now):
		return StateDoubtful
	}
	return StateFresh
}
