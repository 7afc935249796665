package route

import (
	"math"
	"time"
)

// Where peers send to the same upstreams, their work is overheard. A page tells
// next to nothing of it: what came during a step isn't counted yet, and a prompt
// of 50,000 tokens that is half done counts as one request that runs. But a step
// with a prefill in it is ten times as long as one without, and each stream of
// ours that an upstream answers tells when its steps end. What our own prompts
// don't account for is theirs.

const (
	// full is how much of stepBudget a step's work is at least if there was more
	// to do than it could take; the rest is what the estimate may be wrong by.
	full = 0.8
	// overdue is how many times as long as one without a prefill the step in
	// progress is before it surely has one.
	overdue = 1.25
	// overheardFor is for how long a step is waited for. It is longer than one of
	// stepBudget tokens takes at the end of the longest context.
	overheardFor = 10 * time.Second
)

// overhear is the work of others that is to be done before a request sent now,
// prefill tokens, as an upstream's steps tell. arriving is how much of theirs
// comes in a second. It is false where no stream of ours tells of steps.
func (u *upstream) overhear(now time.Duration, arriving float64, each *spread) (work float64, ok bool) {
	last, step := u.pulse.heard()
	since := now - last
	if u.decoding == 0 || step == 0 || since < 0 || since > overheardFor {
		return 0, false
	}
	// What came during the last step is in the one in progress, and what came
	// since waits.
	from, until, before := u.pulse.run()
	busy := float64(since) > overdue*float64(step)
	done := max(since-step, 0).Seconds() * u.rate
	if until < last-step/2 {
		before = step // it had no prefill
	} else if before.Seconds()*u.rate > full*stepBudget {
		// There was more than it could take, so this one goes on with it.
		busy = true
		done += (until-from).Seconds()*u.rate - u.ranSince(from)
	}
	if u.begun > 0 {
		done -= u.begunWork
	}
	switch {
	case !busy:
		work = arriving * before.Seconds()
	case done > 0:
		work = each.rest(done)
	}
	return work + arriving*since.Seconds(), true
}

// noteRan takes in a request of ours that has its first token.
func (u *upstream) noteRan(work float64) {
	if from, _, _ := u.pulse.run(); u.ranFrom != from {
		u.ranFrom, u.ran = from, 0
	}
	u.ran += work
}

// ranSince is our own work that was done in the run of steps that began then.
func (u *upstream) ranSince(from time.Duration) float64 {
	if u.ranFrom != from {
		return 0
	}
	return u.ran
}

// spread is how large requests are: their number and their work by size, older
// ones counting less. Those of others are taken to be as ours.
type spread struct {
	count, work [spreadSizes]float64
	weight      float64 // of the next one
}

const (
	// Sizes go by factors of the root of two, to more than a prompt can be.
	spreadSizes = 64
	// spreadMemory is as for other means over answers, and longer, since it is
	// the largest that matter.
	spreadMemory = 0.995
	// spreadMost is the weight at which weights begin anew, and spreadGone a count
	// that is nothing beside that of the last one: what is left of sizes that no
	// longer come must not become so small that its mean can't be told.
	spreadMost = 1e100
	spreadGone = 1e-50
	// spreadLeast is the number of larger requests from which is told how much
	// larger they are. With fewer, half as much as was done is taken to be left.
	spreadLeast = 0.05
)

func (s *spread) add(work float64) {
	if s.weight = max(s.weight, 1) / spreadMemory; s.weight > spreadMost {
		for i := range s.count {
			s.count[i] /= s.weight
			s.work[i] /= s.weight
			if s.count[i] < spreadGone {
				s.count[i], s.work[i] = 0, 0
			}
		}
		s.weight = 1
	}
	i := min(int(2*math.Log2(max(work, 1))), spreadSizes-1)
	s.count[i] += s.weight
	s.work[i] += s.weight * work
}

// standing is what is left, on average, of the prefill that an upstream works on,
// looked at any time: it is of a large request more often, since that takes longer.
// Nothing waits behind it, as others too send to where nothing does: taking theirs for
// requests that come by chance instead, which gives 1/(1-busy) times that, is three to
// seven times too much in replays of long prompts.
func (s *spread) standing() float64 {
	sum, squares := 0.0, 0.0
	for i, w := range s.work {
		if s.count[i] > 0 {
			sum += w
			squares += w * (w / s.count[i])
		}
	}
	if sum == 0 {
		return 0
	}
	return squares / sum / 2
}

// rest is what is left of a request of which so much is done, the mean of those
// that are larger.
func (s *spread) rest(done float64) float64 {
	count, left := 0.0, 0.0
	for i := spreadSizes - 1; i >= 0; i-- {
		if more := s.work[i] - s.count[i]*done; more > 0 {
			count += s.count[i]
			left += more
		}
	}
	if count < spreadLeast*s.weight {
		return done / 2
	}
	return left / count
}
