package simengine

import (
	"slices"
	"time"
)

// forecast is a thinner copy of an engine that runs ahead of it.
type forecast struct {
	e       *Engine
	free    int
	frac    int64   // ticks, as Engine.frac
	found   []int32 // scratch
	folded  folded
	others  []*sequence // of the batch
	running []ghost     // these, and who comes in
	waiting []ghost     // those that the scheduler doesn't see yet included
	parted  []ghost     // whose blocks aren't in free yet
}

// ghost is a sequence in a forecast.
type ghost struct {
	known, computed, chunk, left int
	held                         int // blocks
	hits                         int // blocks that it will find cached
	unheld                       int // of these, those that no request holds
	queued                       time.Duration
	of                           *sequence // nil for the one that is asked about
	asked                        bool
}

// forecastSteps bounds a forecast; what takes longer has no first token soon
// enough to matter.
const forecastSteps = 100_000

func (f *forecast) wait(s *sequence) {
	if !s.expectedKnown {
		s.expected, s.expectedFree = f.e.hitsBehind(&s.Request, s.order)
		s.expectedKnown = true
	}
	f.waiting = append(f.waiting, ghost{
		known: s.known, left: s.limit - s.generated, hits: s.expected, unheld: s.expectedFree, queued: s.times.Queued, of: s,
	})
}

// run goes from step to step until the request that is asked about has its
// first token.
func (f *forecast) run(now time.Duration) time.Duration {
	t := now
	f.frac = 0
	if f.e.busy {
		if t = max(f.e.end, now); t == f.e.end {
			f.frac = f.e.frac
		}
		f.finish()
	}
	for range forecastSteps {
		work, blocked := f.schedule(t)
		if work == (Work{}) {
			t = max(f.waiting[0].queued, t+1)
			f.frac = 0
			continue
		}
		if blocked && work.PrefillTokens == 0 {
			t += f.decodeOn(work)
			continue
		}
		t += f.took(f.e.rates.step(&f.e.cfg.Cost, work))
		if f.finish() {
			break
		}
	}
	return t
}

// schedule gives each ghost its chunk. blocked says that who is next doesn't
// fit.
func (f *forecast) schedule(t time.Duration) (l Work, blocked bool) {
	cfg := &f.e.cfg
	budget := cfg.MaxNumBatchedTokens - f.folded.decoding
	f.decode(&l)
	for i := range f.running {
		g := &f.running[i]
		g.chunk = min(g.known-g.computed, budget)
		f.take(g, &l)
		budget -= g.chunk
	}
	n := 0
	for n < len(f.waiting) && budget > 0 && f.waiting[n].queued <= t {
		g := f.waiting[n]
		need := blocksFor(g.known, cfg.BlockSize) - g.hits + g.unheld
		if batch := len(f.running) + f.folded.decoding; batch >= cfg.MaxNumSeqs || batch > 0 && !f.fits(need) {
			blocked = true
			break
		}
		f.free -= g.unheld
		g.held = g.hits
		g.computed = g.hits * cfg.BlockSize
		g.chunk = min(g.known-g.computed, budget)
		f.take(&g, &l)
		budget -= g.chunk
		f.running = append(f.running, g)
		n++
	}
	f.waiting = slices.Delete(f.waiting, 0, n)
	return l, blocked
}

// take gives a ghost the blocks for its chunk and adds it to the step's work.
func (f *forecast) take(g *ghost, l *Work) {
	if need := blocksFor(g.computed+g.chunk, f.e.cfg.BlockSize) - g.held; need > 0 {
		f.free -= need
		g.held += need
	}
	switch {
	case g.chunk == 0:
	case g.chunk == 1 && (g.of == nil || g.known > g.of.PromptTokens):
		l.DecodeSeqs++
		l.ContextTokens += g.known
	default:
		l.PrefillTokens += g.chunk
		l.Attention += float64(g.chunk) * (float64(g.computed) + float64(g.chunk)/2)
	}
}

// finish ends a step and tells whether the request asked about has a token.
func (f *forecast) finish() bool {
	done := false
	f.finishFolded()
	kept := 0
	for i := range f.running {
		g := &f.running[i]
		g.computed += g.chunk
		if g.chunk > 0 && g.computed >= g.known {
			done = done || g.asked
			g.known++
			g.left--
		}
		g.chunk = 0
		if g.left <= 0 {
			f.parted = append(f.parted, *g)
			continue
		}
		if kept != i {
			f.running[kept] = *g
		}
		kept++
	}
	f.running = f.running[:kept]
	return done
}

// fits tells whether there is room for so many blocks. What those give back who
// left is counted when it matters: somebody has to look at each of their blocks.
func (f *forecast) fits(need int) bool {
	if need > f.free {
		for i := range f.parted {
			f.free += f.given(&f.parted[i])
		}
		f.parted = f.parted[:0]
	}
	return need <= f.free
}

// given is how many blocks become free with a ghost.
func (f *forecast) given(g *ghost) int {
	if g.of == nil || len(g.of.blocks) == 0 {
		return g.held - g.hits + g.unheld
	}
	return f.e.pool.Sole(g.of.blocks) + g.held - len(g.of.blocks)
}

// took turns ticks into time, and keeps what is left of a nanosecond.
func (f *forecast) took(ticks int64) time.Duration {
	ticks += f.frac
	f.frac = ticks & (1<<tickBits - 1)
	return time.Duration(ticks >> tickBits)
}

// decodeOn lets those that run decode until the first of them ends, and tells
// how long that takes.
func (f *forecast) decodeOn(l Work) time.Duration {
	steps := f.folded.left(forecastSteps)
	for i := range f.running {
		steps = min(steps, f.running[i].left)
	}
	r := &f.e.rates
	first := r.step(&f.e.cfg.Cost, l)
	longest := float64(first) + float64(r.context)*float64(l.DecodeSeqs)*float64(steps)
	steps = max(1, min(steps, int(runTicks/longest)))
	n := int64(steps)
	took := f.took(n*first + r.context*int64(l.DecodeSeqs)*(n*(n-1)/2))
	f.skip(steps - 1)
	for i := range f.running {
		g := &f.running[i]
		g.known += steps - 1
		g.computed += steps - 1
		g.left -= steps - 1
		need := blocksFor(g.known, f.e.cfg.BlockSize) - g.held
		f.free -= max(need, 0)
		g.held += max(need, 0)
	}
	f.finish()
	return took
}
