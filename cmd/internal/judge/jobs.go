package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/cluster"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/workload"
)

// trace is a workload at a rate. Making it can take as long as a replay.
type trace struct {
	open     string // what workload.Open is told
	replicas int
	rate     float64
	seed     uint64
}

// run is one replay. Equal runs give the same to the last bit, so what several
// cells have in common is run once.
type run struct {
	trace
	variant variant // without its name
	policy  string
}

// job is all runs on one trace. They are made one after the other: a workload
// remembers hashes, and isn't for several at once.
type job struct {
	trace
	runs []run
}

// runs of a cell, one for each policy.
func (c *Cell) runs(rate float64) []run {
	v := c.variant
	v.name = ""
	var all []run
	for _, p := range c.policies {
		all = append(all, run{trace{c.open, c.Replicas, rate, c.Seed}, v, p})
	}
	return all
}

// jobsOf gathers the runs of cells by trace. They go seed by seed, so that a time
// which is too short for all leaves a table with fewer seeds, and not one without
// its last parts. Of a seed the cells that come first matter most, and their
// traces come first; of the last one the largest do, so that those who work on
// them end together.
func jobsOf(cells [][]run) []job {
	var jobs []job
	places := make(map[trace]int)
	seen := make(map[run]bool)
	last := uint64(0)
	for _, runs := range cells {
		for _, r := range runs {
			if seen[r] {
				continue
			}
			seen[r] = true
			at, ok := places[r.trace]
			if !ok {
				at = len(jobs)
				places[r.trace] = at
				jobs = append(jobs, job{trace: r.trace})
				last = max(last, r.seed)
			}
			jobs[at].runs = append(jobs[at].runs, r)
		}
	}
	slices.SortStableFunc(jobs, func(a, b job) int {
		if a.seed != b.seed || a.seed != last {
			return cmp.Compare(a.seed, b.seed)
		}
		return cmp.Compare(b.size(), a.size())
	})
	return jobs
}

// size is about what a job costs, in no unit.
func (j *job) size() float64 { return float64(len(j.runs)) * j.rate }

// runner hands out jobs; work is stopped by the last one, an error, the budget
// or the context.
type runner struct {
	ctx      context.Context
	end      time.Time // after which no run is begun; zero is no bound
	jobs     []job
	files    workload.Files
	progress func(done, all int)

	mu   sync.Mutex
	next int
	all  int // runs
	err  error

	scores    map[run]Score
	shareable map[trace]float64
}

// run makes the runs of all jobs, so many jobs at once.
func (r *runner) run(parallel int) error {
	r.scores, r.shareable = make(map[run]Score), make(map[trace]float64)
	for i := range r.jobs {
		r.all += len(r.jobs[i].runs)
	}
	var workers sync.WaitGroup
	for range max(parallel, 1) {
		workers.Go(r.work)
	}
	workers.Wait()
	return r.err
}

func (r *runner) work() {
	for {
		j := r.take()
		if j == nil {
			return
		}
		if err := r.do(j); err != nil {
			r.mu.Lock()
			r.err = cmp.Or(r.err, err)
			r.mu.Unlock()
		}
	}
}

func (r *runner) take() *job {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == len(r.jobs) || r.err != nil || r.late() {
		return nil
	}
	r.next++
	return &r.jobs[r.next-1]
}

func (r *runner) late() bool {
	return r.ctx.Err() != nil || !r.end.IsZero() && time.Now().After(r.end)
}

// do makes a job's runs, as far as there is time.
func (r *runner) do(j *job) error {
	w, err := r.files.Open(j.open, workload.Options{Requests: requestsFor(j.replicas), Rate: j.rate, Seed: j.seed})
	if err != nil {
		return err
	}
	shareable := w.Shareable(blockSize)
	r.mu.Lock()
	r.shareable[j.trace] = shareable
	r.mu.Unlock()
	for _, which := range j.runs {
		if r.late() {
			return nil
		}
		v := which.variant
		o, err := cluster.Run(w, cluster.Config{
			Replicas: j.replicas, Engine: engine(), Rate: j.rate, Seed: j.seed,
			Scenario: v.scenario, Proxies: v.proxies, Split: v.split, ScrapeInterval: v.scrape,
		}, cluster.Named(which.policy))
		if err != nil {
			return fmt.Errorf("%s on %s: %w", which.policy, j.open, err)
		}
		r.note(which, score(o))
	}
	return nil
}

func (r *runner) note(which run, s Score) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scores[which] = s
	if r.progress != nil {
		r.progress(len(r.scores), r.all)
	}
}
