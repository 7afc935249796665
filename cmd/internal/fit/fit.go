package fit

import (
	"errors"
	"math"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Options of Fit.
type Options struct {
	// Judged says which requests the coefficients may be fitted to, by their
	// place in the order of arrival; nil for all. The others are load: their
	// lengths and arrivals count, the times they took don't.
	Judged func(i int) bool

	// Progress is called after each simulation with the error so far; may be
	// nil.
	Progress func(simulations int, score float64)
}

// Bounds of a fit.
const (
	roundsMax   = 12     // of simulation and regression, for each start
	searchMax   = 240    // simulations of the search
	tokensMax   = 1e9    // generated in all simulations, some minutes of a core
	leastMax    = 30     // simulations, though that be more
	blocksTries = 14     // of the search for the number of blocks
	settled     = 0.0005 // relative change of all coefficients
	perfect     = 0.0005 // score at which there is nothing left to search for
)

// Fit returns the configuration with which the simulation comes closest to the
// recorded times, and the simulation.
func (r *Run) Fit(o Options) (simengine.Config, *Timeline, error) {
	if o.Judged == nil {
		o.Judged = func(int) bool { return true }
	}
	f := &fitter{run: r, Options: o, score: math.Inf(1), most: r.affordable()}
	if r.Engine.Blocks > 0 {
		f.pool = pool{blocks: r.Engine.Blocks, exact: true}
	} else {
		f.pool = r.countBlocks()
		r.blocksSource = f.pool.source()
	}
	f.config = r.withBlocks(f.pool.blocks)
	crude, ok := r.crude(o.Judged)
	if !ok {
		return f.config, nil, errors.New("fitting: no request with more than one token")
	}
	starts := []work{crude}
	if x, ok := regress(r.recorded(o.Judged)); ok {
		starts = append(starts, x)
	}
	for _, x := range starts {
		if err := f.rounds(x); err != nil {
			return f.config, nil, err
		}
	}
	if !f.pool.exact && f.pool.full {
		if err := f.searchBlocks(); err != nil {
			return f.config, nil, err
		}
	}
	if err := f.bend(); err != nil {
		return f.config, nil, err
	}
	if err := f.search(); err != nil {
		return f.config, nil, err
	}
	return f.config, f.timeline, nil
}

// crude is a start that needs no regression: all time of decoding is Base, half
// of that between being scheduled and the first token is the prompt's.
func (r *Run) crude(judged func(int) bool) (work, bool) {
	var steps, prompts []float64
	for i := range r.Requests {
		q := &r.Requests[i]
		if !judged(i) {
			continue
		}
		if q.Output > 1 && q.Last > q.First {
			steps = append(steps, (q.Last-q.First).Seconds()/float64(q.Output-1))
		}
		prompts = append(prompts, max(0, (q.First-max(q.Arrived, q.Scheduled)).Seconds())/float64(q.Prompt))
	}
	if len(steps) == 0 {
		return work{}, false
	}
	return work{median(steps), median(prompts) / 2}, true
}

// fitter holds the best so far.
type fitter struct {
	run *Run
	Options
	pool        pool
	config      simengine.Config
	timeline    *Timeline
	score       float64
	simulations int
	most        int // simulations, after which what is best so far is good enough
}

// affordable is how many simulations of the run are worth their time.
func (r *Run) affordable() int {
	tokens := 1.0
	for i := range r.Requests {
		tokens += float64(r.Requests[i].Output)
	}
	return max(leastMax, int(min(tokensMax/tokens, math.MaxInt32)))
}

// try simulates c and keeps it if it is the best so far.
func (f *fitter) try(c simengine.Config) (*Timeline, float64, error) {
	tl, err := f.run.Simulate(c)
	if err != nil {
		return nil, 0, err
	}
	score := f.run.score(tl, f.Judged)
	f.simulations++
	if score < f.score {
		f.config, f.timeline, f.score = c, tl, score
	}
	if f.Progress != nil {
		f.Progress(f.simulations, f.score)
	}
	return tl, score, nil
}

// rounds alternates simulation and regression, from x on, until the
// coefficients stand still.
func (f *fitter) rounds(x work) error {
	for range roundsMax {
		c := f.config
		c.Cost = x.cost(f.config.Cost)
		tl, _, err := f.try(c)
		if err != nil {
			return err
		}
		next, ok := regress(f.run.simulated(tl, f.Judged))
		if !ok {
			return nil
		}
		moved := 0.0
		for i := range x {
			moved = max(moved, math.Abs(next[i]-x[i])/max(next[i], x[i], 1e-15))
		}
		x = next
		if moved < settled || f.simulations >= f.most {
			return nil
		}
	}
	return nil
}

// score is the error to make small: the mean relative errors of the end-to-end
// time and of the time per token, and the error of the time to the first token
// relative to its mean, because single ones may be next to nothing.
func (r *Run) score(tl *Timeline, judged func(int) bool) float64 {
	var e2e, tpot, off, ttft float64
	var n, m int
	for i := range r.Requests {
		if !judged(i) {
			continue
		}
		q, o := &r.Requests[i], &tl.Requests[i]
		n++
		e2e += math.Abs(o.E2E().Seconds()/q.E2E().Seconds() - 1)
		off += math.Abs((o.TTFT() - q.TTFT()).Seconds())
		ttft += q.TTFT().Seconds()
		if q.Last > q.First {
			m++
			tpot += math.Abs((o.Last-o.First).Seconds()/(q.Last-q.First).Seconds() - 1)
		}
	}
	return e2e/float64(max(n, 1)) + tpot/float64(max(m, 1)) + off/max(ttft, 1e-9)
}
