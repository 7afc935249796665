package route

import "time"

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
	staleMax   = time.Minute
	// frozenAfter is how long a page that claims work, and never changes, is
	// believed: an engine at work moves its counters at every step. A page
	// without counters may truly stand still for longer.
	frozenAfter         = 10 * time.Second
	frozenAfterNoCounts = 30 * time.Second
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
		if d := now.Sub(u.scraped); d > 0 {
			u.interval = (3*u.interval + d) / 4
		}
	}
	if u.scraped.IsZero() || moved(&u.load, &page) {
		u.movedAt = now
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
	if before.StartTime.Known && after.StartTime.Known {
		return after.StartTime.Value > before.StartTime.Value+1
	}
	back := func(b, a Num) bool { return b.Known && a.Known && a.Value < b.Value }
	return back(before.PromptTokens, after.PromptTokens) || back(before.OutputTokens, after.OutputTokens) ||
		back(before.PrefixQueries, after.PrefixQueries)
}

func moved(before, after *Load) bool {
	return before.Waiting != after.Waiting || before.Running != after.Running || before.KVUsage != after.KVUsage ||
		before.PromptTokens != after.PromptTokens || before.OutputTokens != after.OutputTokens
}

func (u *upstream) restart() {
	u.foreign = [2]others{}
	u.failures, u.probing = 0, false
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
	still := now.Sub(u.movedAt)
	if u.load.PromptTokens.Known || u.load.OutputTokens.Known {
		return still > frozenAfter
	}
	return still > frozenAfterNoCounts
}

// brought is the load of others that counts now. One scrape alone may catch
// requests of ours in a state that they have left, so the lesser of two is
// taken.
func (u *upstream) brought(now time.Time) others {
	if !u.fresh(now) || u.frozen(now) {
		return others{}
	}
	return others{
		waiting: min(u.foreign[0].waiting, u.foreign[1].waiting),
		running: min(u.foreign[0].running, u.foreign[1].running),
	}
}
