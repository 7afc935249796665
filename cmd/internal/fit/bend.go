package fit

import (
	"math"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// What bends the model is tried in these places, and kept if it takes a quarter of
// the error: with more to choose from, something always fits better.
var (
	expertShares = []float64{1. / 4, 1. / 8, 1. / 16, 1. / 32} // of Mixtral, gpt-oss-20b, Qwen3-30B, DeepSeek-V3
	freeShares   = []float64{0.25, 0.5, 0.75, 1}               // of the tokens that Base would hide at most
)

const bendGain = 0.75

// bend looks whether the recorded times ask for what isn't linear: experts that
// only larger batches need all of, and prefill in the shadow of the weights.
func (f *fitter) bend() error {
	if f.score < perfect {
		return nil
	}
	var bent []simengine.Cost
	if !f.run.dense {
		for _, share := range expertShares {
			c := f.config.Cost
			c.ExpertShare = share
			bent = append(bent, c)
		}
	}
	if err := f.keepBest(bent, bendGain); err != nil {
		return err
	}
	bent = nil
	if c := f.config.Cost; c.PrefillToken > 0 {
		hidden := (c.Base + c.Experts).Seconds() / c.PrefillToken
		for _, share := range freeShares {
			c.PrefillFree = int(min(share*hidden, float64(f.config.MaxNumBatchedTokens)))
			bent = append(bent, c)
		}
	}
	if err := f.keepBest(bent, bendGain); err != nil {
		return err
	}
	bent = nil
	if free := f.config.Cost.PrefillFree; free > 0 {
		for _, share := range []float64{0.9, 0.95, 1.05, 1.1} {
			c := f.config.Cost
			c.PrefillFree = int(share * float64(free))
			bent = append(bent, c)
		}
	}
	return f.keepBest(bent, 1)
}

// keepBest fits the linear coefficients beside each of the bent ones, and keeps
// the best if its error is less than gain of what it was.
func (f *fitter) keepBest(bent []simengine.Cost, gain float64) error {
	best := *f
	best.score = f.score * gain
	for _, c := range bent {
		if f.simulations >= f.most {
			break
		}
		g := *f
		g.score, g.config.Cost = math.Inf(1), c
		if err := g.rounds(coefficients(c)); err != nil {
			return err
		}
		f.simulations = g.simulations
		if g.score < best.score {
			best.config, best.timeline, best.score = g.config, g.timeline, g.score
		}
	}
	if best.timeline != f.timeline {
		f.config, f.timeline, f.score = best.config, best.timeline, best.score
	}
	return nil
}
