package fit

import (
	"cmp"
	"math"
	"slices"
)

// searchBlocks walks from the pool that the recording hints at to the one with
// the smallest error, in steps that halve when neither side is better. Each size
// gets its own coefficients.
func (f *fitter) searchBlocks() error {
	at, step := f.config.Blocks, f.config.Blocks/16
	score := f.score
	for tries := 0; tries < blocksTries && step >= max(1, at/400) && f.simulations < f.most; {
		better := false
		for _, blocks := range []int{at - step, at + step} {
			g := *f
			g.config, g.score = f.run.withBlocks(blocks), math.Inf(1)
			g.config.Cost = f.config.Cost
			if err := g.rounds(coefficients(f.config.Cost)); err != nil {
				return err
			}
			f.simulations = g.simulations
			tries++
			if g.score < score {
				f.config, f.timeline, f.score = g.config, g.timeline, g.score
				at, score, better = g.config.Blocks, g.score, true
				break
			}
		}
		if !better {
			step /= 2
		}
	}
	return nil
}

// search is Nelder and Mead's simplex search over the logarithms of the
// coefficients, begun with steps of some percent round the best so far. Those
// that are 0 stay 0.
func (f *fitter) search() error {
	origin := coefficients(f.config.Cost)
	var free []int
	for i, x := range origin {
		if x > 0 {
			free = append(free, i)
		}
	}
	base := f.config
	left := min(searchMax, f.most-f.simulations)
	eval := func(p []float64) (float64, error) {
		left--
		x := origin
		for i, d := range p {
			x[free[i]] *= math.Exp(d)
		}
		c := base
		c.Cost = x.cost(base.Cost)
		_, score, err := f.try(c)
		return score, err
	}
	type vertex struct {
		at    []float64
		score float64
	}
	if f.score < perfect {
		return nil
	}
	simplex := []vertex{{make([]float64, len(free)), f.score}}
	for i := range free {
		p := make([]float64, len(free))
		p[i] = 0.03
		if left <= 0 {
			return nil
		}
		s, err := eval(p)
		if err != nil {
			return err
		}
		simplex = append(simplex, vertex{p, s})
	}
	order := func() { slices.SortStableFunc(simplex, func(a, b vertex) int { return cmp.Compare(a.score, b.score) }) }
	worst := len(free)
	for left > 1 {
		order()
		if simplex[0].score < perfect || simplex[worst].score-simplex[0].score < 1e-6 {
			return nil
		}
		centre := make([]float64, len(free))
		for _, v := range simplex[:worst] {
			for i, x := range v.at {
				centre[i] += x / float64(worst)
			}
		}
		along := func(t float64) (vertex, error) {
			p := make([]float64, len(free))
			for i := range p {
				p[i] = centre[i] + t*(simplex[worst].at[i]-centre[i])
			}
			s, err := eval(p)
			return vertex{p, s}, err
		}
		v, err := along(-1)
		if err != nil {
			return err
		}
		switch {
		case v.score < simplex[0].score:
			far, err := along(-2)
			if err != nil {
				return err
			}
			if far.score < v.score {
				v = far
			}
		case v.score >= simplex[worst-1].score:
			near, err := along(0.5)
			if err != nil {
				return err
			}
			v = near
		}
		if v.score < simplex[worst].score {
			simplex[worst] = v
			continue
		}
		// Nothing on the line is better: everything moves halfway to the best.
		for j := 1; j <= worst && left > 0; j++ {
			for i := range simplex[j].at {
				simplex[j].at[i] = (simplex[j].at[i] + simplex[0].at[i]) / 2
			}
			if simplex[j].score, err = eval(simplex[j].at); err != nil {
				return err
			}
		}
	}
	return nil
}
