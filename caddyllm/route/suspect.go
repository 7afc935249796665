package route

import "time"

// An upstream is suspect after failures, and when nothing comes of the work it
// has. A suspect is a last resort but for a request now and then that shows
// whether it is well again, and it is well again at its first sign of life.

// How long an upstream that failed is left alone. Half or twice each bound changes
// mean and p99 TTFT by less than 0.1 % where an engine dies, restarts, joins or is
// slow (tenants on 8 engines at 70 % of the knee): health checks see a process that
// is gone as well. They are for what those don't see.
const (
	// firstSuspension is twice Caddy's lb_try_interval, so that the retries of
	// those that failed together go elsewhere. It doubles with each further failure
	// in a row, to maxSuspension: an engine that loads its weights is away for a
	// minute or more, and costs one attempt in each, seven failures on.
	firstSuspension = 500 * time.Millisecond
	maxSuspension   = time.Minute
	// oneFailure is within what requests that were under way together fail, as when
	// a process ends: all its connections are reset at once.
	oneFailure = 100 * time.Millisecond
)

// An upstream that has requests without a first token, and has shown no sign
// of life for stallMin and for stallFactor times as long as their work should
// take, is stalled. Processes may answer health checks and scrapes while the
// engine behind them is stuck. Half or twice of stallMin and stallFactor change
// nothing in the replays above, where no engine is stuck.
const (
	// stallMin is seven steps of 8,192 prompt tokens of a model of 70B on four H100
	// (0.7 s each), after each of which an engine shows life.
	stallMin = 5 * time.Second
	// stallMax is longer than a prompt of a million tokens takes at 10,000 tokens a
	// second.
	stallMax = 2 * time.Minute
	// stallFactor is what the estimate may be wrong by: an upstream's rate by 1.5
	// before it is told apart (ownSpeedBand), tokens by twice, as between English
	// and other scripts, and a little more.
	stallFactor = 4
	// probeEvery is the least time between two probes of one upstream.
	probeEvery = 5 * time.Second
)

// alive notes a sign that an upstream computes.
func (u *upstream) alive(now time.Duration) {
	u.life = now
	if u.stalled {
		u.stalled, u.recovered = false, now
	}
}

// well notes a good answer to a request of the given time. One that was sent
// before the last failure doesn't take that back: an upstream may finish what it
// has, and refuse all that is new.
func (u *upstream) well(now, sent time.Duration) {
	u.alive(now)
	u.refusals, u.refusedAt = 0, never
	if sent >= u.failedAt || u.failedAt > now {
		u.failures = 0
		u.probed = never
	}
}

func (u *upstream) fail(now time.Duration) {
	if since := now - u.failedAt; u.failures > 0 && since >= 0 && since < oneFailure {
		return
	}
	wait := firstSuspension
	for range min(u.failures, 10) {
		wait = min(2*wait, maxSuspension)
	}
	u.stir()
	u.failures++
	u.failedAt = now
	u.suspended = now + wait
}

// refuse notes for how long an upstream that failed asked to be left alone. It
// knows better than the number of its failures tells.
func (u *upstream) refuse(now, wait time.Duration) {
	u.suspended = now + min(max(wait, firstSuspension), maxSuspension)
}

// watch finds out whether nothing comes of an upstream's work.
func (u *upstream) watch(now time.Duration, rate float64) {
	switch {
	case u.life > now:
		u.life = now // the clock stepped back
	case len(u.queue) > 0 && now-u.life > stallMin:
		patience := time.Duration(min(stallFactor*u.queued/rate, stallMax.Seconds()) * float64(time.Second))
		u.stalled = u.stalled || now-u.life > patience
	}
}

// suspect reports whether an upstream shall be left alone now, and if not,
// whether a request to it is a probe.
func (u *upstream) suspect(now time.Duration) (last, probe bool) {
	// Its page says when a sleeper is awake; it needs no probes.
	if u.asleep && u.fresh(now) {
		return true, false
	}
	if u.failures == 0 && !u.stalled {
		return false, false
	}
	// A clock that stepped back must not suspend for ever.
	if u.failures > 0 && now < u.suspended && u.suspended-now <= maxSuspension {
		return true, false
	}
	since := now - u.probed
	return since >= 0 && since < probeEvery, true
}
