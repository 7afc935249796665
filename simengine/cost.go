package simengine

import (
	"math"
	"time"
)

// stepMax bounds a step, so that adding it to a clock can't overflow.
const stepMax = 24 * time.Hour

// Engines count time in ticks, whole parts of a nanosecond, so that a sum over
// many steps is the same however it is made. stepMax in ticks fits an int64.
const tickBits = 16

// rates are the coefficients of what decodes, in ticks.
type rates struct {
	base, sequence, context int64

	experts float64 // to read them all
	spared  float64 // share of them that a token doesn't need
}

func (c *Cost) rates() rates {
	ticks := func(seconds float64) int64 { return int64(seconds * 1e9 * (1 << tickBits)) }
	return rates{
		base: int64(c.Base) << tickBits, sequence: ticks(c.DecodeSeq), context: ticks(c.ContextToken),
		experts: float64(c.Experts) * (1 << tickBits), spared: 1 - c.ExpertShare,
	}
}

// read is the time in ticks to read the experts that n tokens need.
func (r *rates) read(n int) int64 {
	if r.experts == 0 {
		return 0
	}
	return int64(r.experts * (1 - math.Pow(r.spared, float64(n))))
}

// decodes is the length in ticks of a step that only decodes, of less than
// stepMax.
func (r *rates) decodes(seqs, context int) int64 {
	return r.base + r.sequence*int64(seqs) + r.context*int64(context) + r.read(seqs)
}

// step is the length in ticks of a step, at most stepMax.
func (r *rates) step(c *Cost, w Work) int64 {
	if c.seconds(w) >= stepMax.Seconds() {
		return int64(stepMax) << tickBits
	}
	ticks := r.decodes(w.DecodeSeqs, w.ContextTokens)
	if w.PrefillTokens > 0 {
		prefill := c.PrefillToken*float64(max(0, w.PrefillTokens-c.PrefillFree)) + c.AttentionTerm*w.Attention
		ticks += int64(prefill*1e9*(1<<tickBits)) + r.read(w.DecodeSeqs+w.PrefillTokens) - r.read(w.DecodeSeqs)
	}
	return ticks
}

// seconds is at least the length of a step beyond Base.
func (c *Cost) seconds(w Work) float64 {
	return c.PrefillToken*float64(w.PrefillTokens) +
		c.DecodeSeq*float64(w.DecodeSeqs) +
		c.ContextToken*float64(w.ContextTokens) +
		c.AttentionTerm*w.Attention +
		c.Experts.Seconds()
}

// Step is the time of a step that works on w, at most 24 h.
func (c Cost) Step(w Work) time.Duration {
	r := c.rates()
	return time.Duration(r.step(&c, w) >> tickBits)
}
