package route

import "time"

// An upstream is suspect after failures, and when nothing comes of the work it
// has. A suspect is a last resort but for a request now and then that shows
// whether it is well again, and it is well again at its first sign of life.

// How long an upstream that failed is left alone: firstSuspension, doubled
// with each further failure in a row, to maxSuspension. Failures of requests
// that were under way together are one.
const (
	firstSuspension = 500 * time.Millisecond
	maxSuspension   = time.Minute
	oneFailure      = 100 * time.Millisecond
)

// An upstream that has requests without a first token, and has shown no sign
// of life for stallMin and for stallFactor times as long as their work should
// take, is stalled. Processes may answer health checks and scrapes while the
// engine behind them is stuck.
const (
	stallMin    = 5 * time.Second
	stallMax    = 2 * time.Minute
	stallFactor = 4
	// probeEvery is the least time between two probes of one upstream.
	probeEvery = 5 * time.Second
)

// alive notes a sign that an upstream computes.
func (u *upstream) alive(now time.Time) {
	u.life = now
	if u.stalled {
		u.stalled, u.recovered = false, now
	}
}

// well notes a good answer.
func (u *upstream) well(now time.Time) {
	u.alive(now)
	u.failures = 0
	u.probed = time.Time{}
}

func (u *upstream) fail(now time.Time) {
	if since := now.Sub(u.failedAt); u.failures > 0 && since >= 0 && since < oneFailure {
		return
	}
	wait := firstSuspension
	for range min(u.failures, 10) {
		wait = min(2*wait, maxSuspension)
	}
	u.failures++
	u.failedAt = now
	u.suspended = now.Add(wait)
}

// watch finds out whether nothing comes of an upstream's work.
func (u *upstream) watch(now time.Time, rate float64) {
	switch {
	case u.life.After(now):
		u.life = now // the clock stepped back
	case len(u.queue) > 0 && now.Sub(u.life) > stallMin:
		patience := time.Duration(min(stallFactor*u.queued/rate, stallMax.Seconds()) * float64(time.Second))
		u.stalled = u.stalled || now.Sub(u.life) > patience
	}
}

// suspect reports whether an upstream shall be left alone now, and if not,
// whether a request to it is a probe.
func (u *upstream) suspect(now time.Time) (last, probe bool) {
	if u.failures == 0 && !u.stalled {
		return false, false
	}
	// A clock that stepped back must not suspend for ever.
	if u.failures > 0 && now.Before(u.suspended) && u.suspended.Sub(now) <= maxSuspension {
		return true, false
	}
	since := now.Sub(u.probed)
	return !u.probed.IsZero() && since >= 0 && since < probeEvery, true
}
