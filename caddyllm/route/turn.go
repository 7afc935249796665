package route

import "time"

// An engine works in steps. What waits when one begins is in it, up to a budget
// of tokens; what is sent during a step waits for the next, together with all
// others sent since. So a prompt waits for the rest of the step in progress, and
// then for one step with all that joins it; what requests cost beyond their
// tokens is paid once for each step, not for each of them.

const (
	// lead is what an engine does with a request before a step can take it: the
	// least of the 5 to 15 ms that vLLM was seen to spend on HTTP, templating,
	// tokenisation and the way between its processes.
	lead = 5 * time.Millisecond
	// stepBudget is how many prompt tokens are begun together: vLLM's
	// max_num_batched_tokens on GPUs of 70 GiB and more. With a quarter of that, what
	// is left of a long prompt is thought to be more again when steps end sooner than
	// they should. In replays of five workloads that costs nothing in the mean.
	stepBudget = 8192
	// headDone is the most of the step in progress that counts as done before it is
	// heard that it is.
	headDone = 0.9
)

// tokensOf is a request's work without what it costs beyond its tokens.
func tokensOf(f *flight) float64 { return f.work - requestWork }

// join takes those of the queue as begun that were there when a step began.
func (u *upstream) join(step time.Duration, flights []flight) {
	for _, p := range u.queue[u.begun:] {
		f := &flights[p]
		if f.sent+lead > step {
			break
		}
		u.begun++
		u.begunWork += tokensOf(f)
	}
	u.begunAt = step
}

// hear finds out whether a step has begun since the first of the queue came.
func (u *upstream) hear(now time.Duration, flights []flight) {
	if u.begun > 0 || len(u.queue) == 0 {
		return
	}
	first := flights[u.queue[0]].sent + lead
	last, step := u.pulse.heard()
	switch {
	case u.decoding == 0 || now-last > 2*step:
		// No stream tells of steps, so they can't be waited for.
		u.join(now, flights)
		u.begunAt = min(first, now)
	case last >= first:
		u.join(last, flights)
		// Several steps may have begun since: it was in the first.
		u.begunAt = min(last, first+step)
	}
}

// turn says what comes before a request sent now: work, prefill tokens, and the
// time for which the engine is not to be had, seconds. joining is how many
// requests will be in the same step.
func (u *upstream) turn(now time.Duration, pace, apart float64, flights []flight) (ahead, step, joining float64) {
	p := u.progressed(now, flights)
	rest, waiting := 0.0, float64(len(u.queue)) // rest of the step in progress, seconds
	if p.inStep > 0 {
		ahead = leftOf(u.lengthOf(&p, flights), now-p.at, pace)
		rest = ahead * pace
		waiting--
	} else if u.decoding > 0 {
		step = u.pulse.rest(now)
		rest = step
	}
	ahead += requestWork * apart * max(waiting, 0)
	behind := u.behind
	if p != u.progress {
		behind = u.workBehind(&p, flights)
	}
	ahead = max(ahead+behind, u.left(now))
	if rest > 0 && rest < lead.Seconds() {
		// It comes too late for the next step, and isn't in one with those that
		// wait for that.
		return ahead, step + requestWork*pace, 0
	}
	since := len(u.queue)
	for since > 0 && flights[u.queue[since-1]].sent+lead > p.at {
		since--
	}
	return ahead, step, (1 - apart) * float64(len(u.queue)-since)
}

// left is the least that is left of the queue's work, whatever steps were heard to
// end since its last change: an engine is taken to be faster only when its first tokens
// show it. Steps that end soon may as well be those of shorter prompts.
func (u *upstream) left(now time.Duration) float64 {
	return max(u.behind-max((now-u.progress.at).Seconds(), 0)/u.pace, 0)
}

// leftOf is what is left of a step of such a length that has gone on for so long.
func leftOf(length float64, since time.Duration, pace float64) float64 {
	return max(length-max(since.Seconds(), 0)/pace, (1-headDone)*length)
}

// dearer reports whether a request of the given worth that is sent now certainly
// costs more than limit, seconds: by what comes before it in any case, and what it
// takes from those that decode. Of hundreds of upstreams that is enough to pass most
// by, and it asks no flight.
func (u *upstream) dearer(now time.Duration, worth, limit float64) bool {
	work := worth * (1 + unavoidable*stall*float64(u.decoding))
	if len(u.queue) == 0 {
		return work*u.pace > limit
	}
	return (u.left(now)+work)*u.pace > limit || (u.unchanged(now)+work)*u.pace > limit
}

// unchanged is the work that comes before a request where the step that was in
// progress at the queue's last change still is; 0 where it may not be.
func (u *upstream) unchanged(now time.Duration) float64 {
	p := &u.progress
	took := time.Duration(u.length * u.pace * float64(time.Second))
	if began, n := u.heardSince(now); p.inStep == 0 || n > 0 && began > p.at || u.overdue(now, p, took) {
		return 0
	}
	return leftOf(u.length, now-p.at, u.pace) + u.behind
}

// apart is how far first tokens come one by one that should come together: an
// engine with few slots takes the next request when another ends, and each pays,
// as it seems, for a step of its own. It is that of all upstreams together.
type apart struct {
	should, did float64 // mates of first tokens, sums of which older ones count less
}

const (
	apartMemory = 0.98
	// apartPrior mates are taken to have come one by one before any were seen.
	apartPrior = 4
)

func (a *apart) share() float64 { return min(max(1-a.did/a.should, 0), 1) }

// learn takes a first token: of a new step with so many mates, or of one of them.
func (a *apart) learn(u *upstream, again bool, mates int) {
	switch {
	case !again:
		a.did, a.should = a.did*apartMemory, max(a.should*apartMemory, 1)+float64(mates)
		u.due = mates
	case u.due > 0:
		a.did++
		u.due--
	}
}
