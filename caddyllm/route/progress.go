package route

import "time"

// What an engine does with the prompts sent to it is followed step by step. Each
// step takes, of what was there when it began and in the order in which it came,
// as many tokens as it may; streams that pass tell when steps end. So it is known
// which tokens are in the step in progress, and for how long it has gone on.

// progress is how far the prompts of a queue are.
type progress struct {
	done   float64       // of the queue's tokens to be computed, those of steps that ended
	inStep float64       // those behind them that the step in progress takes
	at     time.Duration // when that began
	steps  int64         // that ended
}

const (
	// unheardSteps bounds how many steps are taken to have ended unheard: more
	// than the longest context takes.
	unheardSteps = 64
	// followMost is the longest queue that is followed, and stepPrompts how many of
	// its prompts a step takes at most: the max_num_seqs of vLLM on GPUs of 70 GiB and
	// more. Both bound what a decision walks over.
	followMost  = 256
	stepPrompts = 1024
	// overdueSteps is how many times as long as it should be a step goes on before
	// it is taken for one whose end wasn't heard.
	overdueSteps = 2
)

// missedOf is how many tokens of a prompt its engine is to compute.
func missedOf(f *flight) float64 { return max(f.prompt-f.matched, 1) }

// takes is how many of the queue's tokens a step takes that begins at the given
// time, behind those done.
func (u *upstream) takes(done float64, at time.Duration, flights []flight) float64 {
	most := max(stepBudget-float64(u.decoding), 0)
	there, prompts := 0.0, 0
	for _, p := range u.queue {
		f := &flights[p]
		if f.sent+lead > at || there >= done+most || prompts == stepPrompts {
			break
		}
		if there += missedOf(f); there > done {
			prompts++
		}
	}
	return min(max(there-done, 0), most)
}

// span sums up what computing a part of the queue's tokens means for a step.
func (u *upstream) span(from, to float64, flights []flight) (l stepLoad) {
	at := 0.0
	for _, p := range u.queue {
		if at >= to {
			break
		}
		f := &flights[p]
		n := missedOf(f)
		if a, b := max(from-at, 0), min(to-at, n); b > a {
			l.tokens += b - a
			l.pairs += (b - a) * (f.matched + (a+b)/2)
		}
		at += n
	}
	return l
}

// mates are how many first tokens should come together now, one of them included:
// of those whose last tokens were in the step that has ended.
func (u *upstream) mates(flights []flight) (n int) {
	left := u.progress.done + 0.5
	if left < missedOf(&flights[u.queue[0]]) {
		left += u.progress.inStep // it was farther than thought
	}
	for _, p := range u.queue {
		if left -= missedOf(&flights[p]); left < 0 {
			break
		}
		n++
	}
	return max(n, 1)
}

// goesOn reports whether the queue has more than so many tokens.
func (u *upstream) goesOn(tokens float64, flights []flight) bool {
	for _, p := range u.queue {
		if tokens -= missedOf(&flights[p]); tokens < 0 {
			return true
		}
	}
	return false
}

// loadOf is what the step in progress works on.
func (u *upstream) loadOf(p *progress, flights []flight) stepLoad {
	l := u.span(p.done, p.done+p.inStep, flights)
	l.sequences = float64(u.decoding)
	l.context = u.context + float64((p.steps-u.progress.steps)*int64(u.decoding))
	return l
}

// step ends the step in progress, and begins the next at the given time.
func (u *upstream) step(p *progress, at time.Duration, flights []flight) {
	if len(u.queue) > 0 && p.done >= missedOf(&flights[u.queue[0]]) {
		// The first should have had its first token before: it is less far, as all
		// behind it are.
		p.done, p.inStep = 0, 0
	}
	p.done += p.inStep
	p.at = at
	p.inStep = u.takes(p.done, at, flights)
	p.steps++
}

// progressed is how far the queue is now: as far as it was at its last change, and
// the steps that have ended since. It changes nothing.
func (u *upstream) progressed(now time.Duration, flights []flight) progress {
	p := u.progress
	if len(u.queue) > followMost {
		return p
	}
	began, n := u.heardSince(now)
	switch {
	case n == 0 || began <= p.at:
	case len(u.queue) == 0:
		p.at, p.steps = began, p.steps+n
	default:
		from, n := p.at, min(n, unheardSteps)
		for i := int64(1); i <= n; i++ {
			u.step(&p, from+(began-from)*time.Duration(i)/time.Duration(n), flights)
		}
	}
	// No stream may tell.
	for range unheardSteps {
		if !u.goesOn(p.done+p.inStep, flights) {
			break
		}
		took := u.tookOf(&p, flights)
		if !u.overdue(now, &p, took) {
			break
		}
		u.step(&p, p.at+took, flights)
	}
	return p
}

// tookOf is how long the step in progress should be.
func (u *upstream) tookOf(p *progress, flights []flight) time.Duration {
	return time.Duration(u.lengthOf(p, flights) * u.pace * float64(time.Second))
}

// lengthOf is how long that is, prefill tokens.
func (u *upstream) lengthOf(p *progress, flights []flight) float64 {
	if *p == u.progress {
		return u.length
	}
	l := u.loadOf(p, flights)
	return u.stepLengths.tokens(&l)
}

// overdue reports whether the step in progress is to be taken for one that has
// ended unheard.
func (u *upstream) overdue(now time.Duration, p *progress, took time.Duration) bool {
	if u.decoding > 0 {
		took *= overdueSteps
	}
	return now-p.at >= took
}

// heardSince is when the step in progress was heard to begin, and how many steps
// have ended since progress. What is heard while a decision is made counts for the
// next.
func (u *upstream) heardSince(now time.Duration) (began time.Duration, n int64) {
	began, count := u.pulse.began()
	if began > now {
		return 0, 0
	}
	return began, count - u.counted
}

// follow brings an upstream's progress up to date, before something changes, after
// which it is to be remembered: first says that it is a first token that came. What steps took is learned from them,
// but not where others' prompts may be in them.
func (r *Router) follow(now time.Duration, u *upstream, first bool) {
	began, n := u.heardSince(now)
	if n == 1 && began > u.progress.at && u.following && r.peers.count() <= 1 {
		p := &u.progress
		u.sample = stepSample{u.loadOf(p, r.flights), (began - p.at).Seconds() * u.rate, began}
		if p.inStep == 0 && len(u.queue) == 0 || p.inStep > 0 && p.inStep >= stepBudget-float64(u.decoding) {
			r.steps.learn(&u.sample) // no first token need come of it
			u.sample = stepSample{}
		}
	}
	p := u.progressed(now, r.flights)
	u.context += float64((p.steps - u.progress.steps) * int64(u.decoding))
	// What was taken to have ended unheard didn't begin what is heard to end next.
	u.following = (n > 0 || u.following) && (p.at == began || p.at == u.progress.at)
	u.counted += n
	u.progress = p
	if first {
		// Those of one step tell once.
		if u.sample.ended > 0 && u.sample.ended == p.at {
			r.steps.learn(&u.sample)
		}
		u.sample = stepSample{}
	}
}

// followed notes what has become of the queue.
func (u *upstream) followed(flights []flight) {
	p := &u.progress
	p.done = max(p.done, 0)
	if len(u.queue) == 0 {
		p.done = 0
	}
	p.inStep = u.takes(p.done, p.at, flights)
	u.remember(flights)
}

// remember notes what the step in progress, and what is behind it, means for those
// that decide whether to come.
func (u *upstream) remember(flights []flight) {
	u.length, u.behind = 0, 0
	if len(u.queue) > 0 {
		l := u.loadOf(&u.progress, flights)
		u.length, u.behind = u.stepLengths.tokens(&l), u.workBehind(&u.progress, flights)
	}
}

// workBehind is the work of the queue behind the step in progress.
func (u *upstream) workBehind(p *progress, flights []flight) float64 {
	if len(u.queue) == 0 {
		return 0
	}
	l := u.span(0, p.done+p.inStep, flights)
	return max(u.queued-requestWork*float64(len(u.queue))-l.tokens-attention*l.pairs, 0)
}
