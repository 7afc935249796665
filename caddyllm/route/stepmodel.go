package route

import "time"

// stepLoad is what a step of an engine works on.
type stepLoad struct {
	sequences float64 // that decode
	context   float64 // tokens that these look at
	tokens    float64 // of prompts
	pairs     float64 // of one of these and a token before it
}

// stepParts is on how many things the length of a step depends.
const stepParts = 5

// parts are what a step's length depends on, each in a unit in which it is around 1.
func (l *stepLoad) parts() [stepParts]float64 {
	return [stepParts]float64{1, l.sequences / 100, l.context / 100_000, l.tokens / 4000, l.pairs / 40_000_000}
}

// plain is how long a step is thought to be before any was heard, prefill tokens.
func (l *stepLoad) plain() float64 { return requestWork + l.tokens + attention*l.pairs }

// stepSample is a step that has ended.
type stepSample struct {
	load  stepLoad
	took  float64 // prefill tokens that take so long
	ended time.Duration
}

// stepModel is how long steps are, in prefill tokens that take as long: what each
// of the parts adds to a plain step, by least squares over all upstreams' steps. An
// upstream whose rate isn't its own moves it for all: one of eight that is slower by
// less than ownSpeedBand, by as much of that as it has of the samples.
// The decision's other terms go by A0 and the rate alone. It is the step in
// progress that they are not good enough for: whether it ends 5 ms sooner here or
// there decides between upstreams that are otherwise alike.
type stepModel struct {
	adds    [stepParts]float64
	squares [stepParts][stepParts]float64
	sums    [stepParts]float64
	fresh   int // samples since adds was solved for
}

const (
	// stepMemory is what a sample's weight falls to with each later one.
	stepMemory = 0.998
	// stepPrior is how many samples weigh as much as that nothing is added.
	stepPrior = 0.5
	// stepSurprise is how much longer or shorter than thought a step can be, as far
	// as something is learned from it: one may have a prompt in it whose hit missed.
	stepSurprise = 0.3
	// stepLeast is the part of a plain step that a step takes at least.
	stepLeast = 0.25
	// stepSolve is after how many samples the sums are solved anew.
	stepSolve = 8
)

// tokens is how long a step is.
func (m *stepModel) tokens(l *stepLoad) float64 {
	plain := l.plain()
	t := plain
	for i, part := range l.parts() {
		t += part * m.adds[i]
	}
	return max(t, stepLeast*plain)
}

// learn takes in a step.
func (m *stepModel) learn(s *stepSample) {
	thought := m.tokens(&s.load)
	took := min(max(s.took, thought*(1-stepSurprise)), thought*(1+stepSurprise))
	parts, more := s.load.parts(), took-s.load.plain()
	// No step tells more than one in which each part is 1: by squares, a single very
	// long context would outweigh thousands.
	square := 0.0
	for _, a := range parts {
		square += a * a
	}
	weight := 1 / max(square/stepParts, 1)
	for i, a := range parts {
		for j, b := range parts {
			m.squares[i][j] = m.squares[i][j]*stepMemory + weight*a*b
		}
		m.sums[i] = m.sums[i]*stepMemory + weight*a*more
	}
	if m.fresh++; m.fresh == stepSolve {
		m.fresh = 0
		m.solve()
	}
}

// solve finds what each part adds, by elimination. The prior keeps what it divides
// by above zero.
func (m *stepModel) solve() {
	a, b := m.squares, m.sums
	for i := range a {
		a[i][i] += stepPrior
	}
	for i := range a {
		for j := i + 1; j < stepParts; j++ {
			f := a[j][i] / a[i][i]
			for k := i; k < stepParts; k++ {
				a[j][k] -= f * a[i][k]
			}
			b[j] -= f * b[i]
		}
	}
	for i := stepParts - 1; i >= 0; i-- {
		for k := i + 1; k < stepParts; k++ {
			b[i] -= a[i][k] * m.adds[k]
		}
		m.adds[i] = b[i] / a[i][i]
	}
}
