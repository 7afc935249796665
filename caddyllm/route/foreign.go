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
	// renewed is for how long a page may be like the one before since the engine
	// hasn't renewed it: SGLang does so each 40 steps of decoding.
	renewed = 3 * time.Second
	// maxForeign bounds the requests that a page can make us believe in.
	maxForeign = 100_000
)

// Scraped tells what an upstream's metrics page said.
func (r *Router) Scraped(at time.Time, id string, l *Load) {
	now := r.clock.at(at)
	u := r.upstream(now, id)
	page := sane(*l)
	first := u.scraped == never
	if !first {
		if restarted(&u.load, &page) {
			u.restart()
			r.empty(u)
		}
		if d := now - u.scraped; d > 0 && u.interval > 0 {
			u.interval = (3*u.interval + d) / 4
		} else if d > 0 {
			u.interval = d
		}
	}
	if worked(&u.load, &page) {
		u.alive(now)
	}
	if first || moved(&u.load, &page) {
		u.movedAt, u.still = now, 0
	} else {
		u.still++
	}
	u.load, u.scraped = page, now
	if u.still == 0 {
		u.gauge.note(r.running(u), page.KVUsage)
	}
	second := u.paged
	u.judgePage()
	r.noteLoad(u, now, second)
	if u.slot >= 0 {
		if u.asleep {
			r.empty(u)
		}
		r.index.SetCap(u.slot, r.capacityBlocks(u))
	}
}

// ScrapeFailed tells that an upstream's page could not be had. What the last
// one said ages.
func (r *Router) ScrapeFailed(at time.Time, id string) { r.upstream(r.clock.at(at), id) }

// judgePage draws from the last page what decisions read.
func (u *upstream) judgePage() {
	u.stir()
	u.judgeOthers()
	u.asleep = u.load.Awake.Known && u.load.Awake.Value == 0
	u.capacity = u.gauge.capacity(u.load.CapacityTokens.Value)
	u.used = u.load.KVUsage.Value * u.capacity
	u.pageFrom, u.pageUntil, u.pageCount, u.frozen = -never, never, never, -never
	if u.load.Empty() {
		return
	}
	u.pageFrom = u.scraped - staleMax
	u.pageUntil = u.scraped + min(max(staleAfter*u.interval, staleMin), staleMax)
	if u.still >= frozenPages && u.load.Waiting.Value+u.load.Running.Value > 0 {
		u.frozen = u.movedAt + frozenAfterNoCounts
		if u.load.PromptTokens.Known || u.load.OutputTokens.Known {
			u.frozen = u.movedAt + frozenAfter
		}
	}
	u.pageCount = min(u.pageUntil, u.frozen)
}

// judgeOthers finds what requests of others a page shows.
func (u *upstream) judgeOthers() {
	foreign := others{
		waiting: excess(u.load.Waiting, u.peakPrefill),
		running: excess(u.load.Running, u.peakTotal),
	}
	if u.load.Running.Known {
		// One of ours that is thought to decode, and waits, isn't another's.
		all := Known(u.load.Waiting.Value + u.load.Running.Value)
		foreign.waiting = min(foreign.waiting, excess(all, u.peakTotal))
	}
	// One scrape alone may catch requests of ours in a state that they have
	// left, so the lesser of two is taken. The first finds hardly any of ours, and
	// an engine that was busy before must not look idle until the second.
	u.brought = foreign
	if u.paged {
		u.brought = others{
			waiting: min(foreign.waiting, u.foreign.waiting),
			running: min(foreign.running, u.foreign.running),
		}
	}
	u.foreign, u.paged = foreign, true
	// The page shows a moment since the last scrape, and any of what was in flight
	// since then may be in it; or a moment before, where the engine renews its gauges
	// once in a while and shows the same page again meanwhile.
	if u.still == 0 || u.scraped-u.movedAt >= renewed {
		u.peakPrefill, u.peakTotal = u.waiting, u.inFlight()
	}
}

// fresh reports whether the last page is new enough.
func (u *upstream) fresh(now time.Duration) bool { return now >= u.pageFrom && now <= u.pageUntil }

// known reports whether the last page counts: it is new enough, and doesn't
// claim work and stand still.
func (u *upstream) known(now time.Duration) bool { return now >= u.pageFrom && now <= u.pageCount }

// sane makes unknown what can't be true.
func sane(l Load) Load {
	for _, n := range []*Num{
		&l.Waiting, &l.Running, &l.KVUsage, &l.CapacityTokens, &l.BlockTokens, &l.PrefixHits,
		&l.PrefixQueries, &l.PromptTokens, &l.OutputTokens, &l.Preemptions, &l.PrefixCache, &l.Awake, &l.StartTime,
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
	u.foreign, u.paged = others{}, false
	u.failures, u.stalled, u.probed = 0, false, never
	u.factor, u.audit, u.told, u.gauge = 1, audit{}, [forms]int8{}, gauge{}
}

// State says how much is known of an upstream's own queue.
type State string

const (
	StateUnknown  State = "unknown"  // no page was read, or one that tells nothing
	StateFresh    State = "fresh"    // the last page counts
	StateStale    State = "stale"    // the last page is too old to count
	StateDoubtful State = "doubtful" // the page or the engine stands still with work to do
	StateAsleep   State = "asleep"   // the page says that the engine sleeps
)

func (u *upstream) state(now time.Duration) State {
	switch {
	case u.stalled:
		return StateDoubtful
	case u.scraped == never || u.load.Empty():
		return StateUnknown
	case !u.fresh(now):
		return StateStale
	case u.asleep:
		return StateAsleep
	case now > u.frozen:
		return StateDoubtful
	}
	return StateFresh
}
