package fit

import (
	"math"
	"slices"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// observation is a recorded time and the work that was done in it.
type observation struct {
	seconds float64
	work    work
}

// recorded are observations that need no simulation: a request that wasn't
// preempted gets a token in each step, so the steps from its first to its last
// token are counted, and what the others did meanwhile follows from their own
// times, taking each one's tokens to come evenly. judged says which requests may
// be looked at; what the others did counts, as it is part of the load.
func (r *Run) recorded(judged func(i int) bool) []observation {
	var list []observation
	stride := 1 + len(r.Requests)/momentsMax
	for i := range r.Requests {
		q := &r.Requests[i]
		if i%stride != 0 || !judged(i) || q.Output < 2 || q.Last <= q.First {
			continue
		}
		o := observation{seconds: (q.Last - q.First).Seconds(), work: work{float64(q.Output - 1)}}
		for j := range r.Requests {
			p := &r.Requests[j]
			if q.First < p.First && p.First <= q.Last {
				n := float64(p.Prompt)
				o.work[1] += n
				o.work[4] += n * n / 2
			}
			if p.Output < 2 || p.Last <= p.First {
				continue
			}
			from, to := max(p.First, q.First), min(p.Last, q.Last)
			if from >= to {
				continue
			}
			a, b := p.share(from), p.share(to)
			n := (b - a) * float64(p.Output-1)
			o.work[2] += n
			o.work[3] += n * (float64(p.Prompt) + (a+b)/2*float64(p.Output-1))
		}
		list = append(list, o)
	}
	return list
}

// share is how much of its decoding a request has done by t, 0 to 1.
func (r *Request) share(t time.Duration) float64 {
	return float64(t-r.First) / float64(r.Last-r.First)
}

// simulated are observations whose work is what the simulated steps did between
// the same two events: from being scheduled to the first token, and from there
// to the last.
func (r *Run) simulated(tl *Timeline, judged func(i int) bool) []observation {
	var list []observation
	for i := range r.Requests {
		q, o := &r.Requests[i], &tl.Requests[i]
		if !judged(i) {
			continue
		}
		s := &tl.steps[o.engine]
		first := s.by(o.First)
		w := first.minus(s.by(o.Scheduled))
		if o.Scheduled <= s.began[0] {
			w[firstStep] = 1
		}
		if q.Scheduled >= 0 && q.Scheduled < q.First && (w[firstStep] > 0 || comparable(o.First-o.Scheduled, q.First-q.Scheduled)) {
			list = append(list, observation{(q.First - q.Scheduled).Seconds(), w})
		}
		if q.Last > q.First && comparable(o.Last-o.First, q.Last-q.First) {
			list = append(list, observation{(q.Last - q.First).Seconds(), s.by(o.Last).minus(first)})
		}
	}
	return list
}

// comparable tells whether two times can be of the same doing. A request that
// was preempted in one world and not in the other spent most of it waiting.
func comparable(a, b time.Duration) bool { return a < 5*b && b < 5*a }

// regress returns the coefficients, none below 0, that come closest to the
// observations, and false if they tell too little. Errors count relative to the
// observation. Outliers, such as requests that were preempted in one world and
// not in the other, count less and less in each round. FirstStep is what the
// observations with the first step in them exceed the others' coefficients by:
// they are few, and without it would be outliers.
func regress(all []observation) (work, bool) {
	var list, first []observation
	for _, o := range all {
		if o.work[firstStep] > 0 {
			first = append(first, o)
		} else {
			list = append(list, o)
		}
	}
	if len(list) < 2 {
		return work{}, false
	}
	equations := make([]equation, len(list))
	var steps []float64
	for i, o := range list {
		for j := range o.work {
			equations[i].left[j] = o.work[j] / o.seconds
		}
		equations[i].right, equations[i].weight = 1, 1
		steps = append(steps, o.seconds/max(o.work[0], 1))
	}
	var x work
	residuals := make([]float64, len(list))
	sigma := 0.01
	for range 8 {
		var ok bool
		if x, ok = leastSquares(append(equations[:len(list):len(list)], prior(median(steps), sigma, equations)...)); !ok {
			return x, false
		}
		for i := range list {
			residuals[i] = math.Abs(dot(equations[i].left, x) - 1)
		}
		// Beyond two standard deviations an error counts by its size and not by
		// its square.
		sigma = 1.5 * max(median(residuals), 1e-6)
		for i, e := range residuals {
			equations[i].weight = min(1, 2*sigma/max(e, sigma*1e-6))
		}
	}
	var more []float64
	for _, o := range first {
		more = append(more, o.seconds-dot(o.work, x))
	}
	x[firstStep] = max(0, median(more))
	return x, true
}

func dot(a, b work) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

// equation says that left·x should be right.
type equation struct {
	left          work
	right, weight float64
}

// independent is as how many observations any number of them counts against what
// is known before: a recording has a handful of different situations, such as
// idle, filling up, full and running dry.
const independent = 5

// prior is what is known of GPUs before anything is recorded: that coefficients
// stand to each other as in the presets, give or take as much again. It decides
// only where the recording doesn't: in a run whose batches are all alike, say,
// what is of the step and what of the sequences. step is the time of a step,
// sigma the relative error of each of those seen. These aren't independent:
// requests side by side share the same steps, and where the model bends they all
// lean the same way. So they count as fewer.
func prior(step, sigma float64, seen []equation) []equation {
	weight := sigma * sigma * max(1, float64(len(seen))/independent)
	var list []equation
	for _, pair := range [][2]int{{prefill, 0}, {2, 0}, {3, 0}, {4, prefill}, {experts, 0}} {
		ratio, scale := usual(pair[0], pair[1]), step
		if pair[1] != 0 {
			scale *= usual(pair[1], 0)
		}
		if pair[0] == experts {
			ratio = 1 // no preset has any
		}
		if !slices.ContainsFunc(seen, func(e equation) bool { return e.left[pair[0]] > 0 }) {
			continue // nothing was done of it
		}
		e := equation{weight: weight}
		e.left[pair[0]] = 1 / (ratio * scale)
		e.left[pair[1]] = -1 / scale
		list = append(list, e)
	}
	return list
}

// usual is the median of the presets' ratios of two coefficients.
func usual(i, j int) float64 {
	var ratios []float64
	for _, p := range simengine.Presets() {
		x := coefficients(p.Config.Cost)
		ratios = append(ratios, x[i]/x[j])
	}
	return median(ratios)
}

// leastSquares tries each set of terms that may be above 0: there are few. The
// best that comes out above 0 wins. Base is always one of them: no step is free.
func leastSquares(list []equation) (best work, ok bool) {
	var scale work
	for _, e := range list {
		for i, x := range e.left {
			scale[i] += e.weight * x * x
		}
	}
	for i := range scale {
		scale[i] = math.Sqrt(scale[i])
	}
	var gram [terms][terms]float64
	var right work
	for _, e := range list {
		for i := range terms {
			if scale[i] == 0 {
				continue
			}
			a := e.weight * e.left[i] / scale[i]
			right[i] += a * e.right
			for j := range terms {
				if scale[j] > 0 {
					gram[i][j] += a * e.left[j] / scale[j]
				}
			}
		}
	}
	gain := math.Inf(-1)
	for set := 1; set < 1<<firstStep; set += 2 {
		x, solved := solve(gram, right, set)
		if !solved || slices.ContainsFunc(x[:], func(v float64) bool { return v < 0 }) {
			continue
		}
		// The sum of squares is a constant less this.
		if g := dot(x, right); g > gain {
			gain, best, ok = g, x, true
		}
	}
	for i := range best {
		if scale[i] > 0 {
			best[i] /= scale[i]
		}
	}
	return best, ok && best[0] > 0
}

// solve solves the normal equations for the terms in set.
func solve(gram [terms][terms]float64, right work, set int) (x work, ok bool) {
	trace := 0.0
	for i := range terms {
		trace += gram[i][i]
	}
	for i := range terms {
		if set>>i&1 == 0 || gram[i][i] == 0 {
			for j := range terms {
				gram[i][j], gram[j][i] = 0, 0
			}
			gram[i][i], right[i] = 1, 0
			continue
		}
	}
	for i := range terms {
		if gram[i][i] <= 1e-14*trace {
			return x, false
		}
		for j := i + 1; j < terms; j++ {
			f := gram[j][i] / gram[i][i]
			for k := i; k < terms; k++ {
				gram[j][k] -= f * gram[i][k]
			}
			right[j] -= f * right[i]
		}
	}
	for i := terms - 1; i >= 0; i-- {
		x[i] = right[i]
		for k := i + 1; k < terms; k++ {
			x[i] -= gram[i][k] * x[k]
		}
		x[i] /= gram[i][i]
	}
	return x, true
}

// cost turns coefficients into a Cost that a simulation can have, with what isn't
// linear as in like.
func (w work) cost(like simengine.Cost) simengine.Cost {
	clamp := func(x float64) float64 { return min(max(x, 0), 1) }
	return simengine.Cost{
		Base:            max(seconds(clamp(w[0])), time.Microsecond),
		PrefillToken:    clamp(w[prefill]),
		PrefillFree:     like.PrefillFree,
		DecodeSeq:       clamp(w[2]),
		ContextToken:    clamp(w[3]),
		AttentionTerm:   clamp(w[4]),
		Experts:         seconds(clamp(w[experts])),
		ExpertShare:     like.ExpertShare,
		FirstStep:       seconds(clamp(w[firstStep])),
		RequestOverhead: like.RequestOverhead,
	}
}

func coefficients(c simengine.Cost) work {
	return work{c.Base.Seconds(), c.PrefillToken, c.DecodeSeq, c.ContextToken, c.AttentionTerm, c.Experts.Seconds(), c.FirstStep.Seconds()}
}
