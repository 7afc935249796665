package fit

import (
	"math"
	"slices"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// pool is what a recording tells about the number of KV blocks.
type pool struct {
	blocks int
	exact  bool // told by the usage's own steps
	full   bool // the pool was short at some time
}

// source says where the number is from.
func (p pool) source() string {
	switch {
	case p.exact:
		return "from the steps of the recorded usage"
	case p.full:
		return "fitted"
	}
	return "guessed"
}

// moment is what the requests' own times say of one moment.
type moment struct {
	running, waiting, prefilling int
	blocks                       float64 // held, if nobody was preempted
}

// moment counts who was where at t.
func (r *Run) moment(t time.Duration) moment {
	var m moment
	size := float64(r.Engine.BlockSize)
	for i := range r.Requests {
		q := &r.Requests[i]
		entered := q.Scheduled
		if entered < 0 {
			entered = q.First
		}
		switch {
		case t < q.Arrived || t >= q.Last:
		case t < entered:
			m.waiting++
		default:
			m.running++
			tokens := float64(q.Prompt)
			if t < q.First {
				m.prefilling++
			} else if q.Last > q.First {
				tokens += 1 + q.share(t)*float64(q.Output-1)
			}
			m.blocks += math.Ceil(tokens / size)
		}
	}
	return m
}

// countBlocks tells the size of the pool from the recording: the usage is a
// share of it, and what the requests held follows from their lengths and times.
func (r *Run) countBlocks() pool {
	if p, ok := r.blocksByUsage(); ok {
		return p
	}
	// Without usage: when someone had to wait though the batch wasn't full, the
	// pool was. How much it then held is how much it has, but for what the head
	// of the queue was short of, and for the preempted, which seem to run.
	var short []float64
	most := 0.0
	for i := range r.Requests {
		at := r.Requests[i].First
		m := r.moment(at)
		m.blocks /= float64(max(1, r.Replicas))
		most = max(most, m.blocks)
		if m.waiting > 0 && m.running < r.Engine.MaxNumSeqs*max(1, r.Replicas) && m.prefilling == 0 {
			short = append(short, m.blocks)
		}
	}
	// Waiting for a step or two is no shortage.
	if len(short) > len(r.Requests)/20+3 {
		return pool{blocks: int(median(short)) + 1, full: true}
	}
	r.note("the KV pool was never short: its size can't be told and is taken as twice what was in use")
	return pool{blocks: int(2*most) + 1}
}

// blocksByUsage compares the recorded usage with what the requests held.
func (r *Run) blocksByUsage() (pool, bool) {
	shift := r.shift(func(t time.Duration) (running, waiting float64) {
		m := r.moment(t)
		return float64(m.running), float64(m.waiting)
	})
	var sizes []float64
	top := 0.0
	for _, s := range r.Samples {
		top = max(top, s.Usage)
		m := r.moment(s.At + shift)
		// Someone in prefill holds an unknown part of his prompt's blocks; if
		// fewer run than there should, someone was preempted.
		if s.Usage < 0.02 || m.running == 0 || m.running != s.Running || m.prefilling > 0 {
			continue
		}
		sizes = append(sizes, m.blocks/s.Usage/float64(max(1, r.Replicas)))
	}
	if len(sizes) < 3 {
		return pool{}, false
	}
	p := pool{blocks: int(math.Round(median(sizes))) + 1, full: top > 0.9}
	if exact, ok := r.blocksByGrain(p.blocks); ok {
		p.blocks, p.exact = exact, true
	}
	return p, true
}

// usageGrain is half of the last digit that usage is recorded with, which is a
// hundredth of a percent.
const usageGrain = 0.5e-4

// blocksByGrain finds the pool near about of which every recorded usage is a
// whole number of blocks, up to rounding, if there is just one.
func (r *Run) blocksByGrain(about int) (int, bool) {
	if r.Replicas > 1 {
		return 0, false
	}
	found, n := 0, 0
	for blocks := about * 9 / 10; blocks <= about*11/10; blocks++ {
		if r.fitsUsage(blocks) {
			found = blocks
			n++
		}
	}
	return found, n == 1
}

func (r *Run) fitsUsage(blocks int) bool {
	capacity := float64(blocks - 1)
	return !slices.ContainsFunc(r.Samples, func(s Sample) bool {
		if s.Usage < 0 {
			return false
		}
		whole := math.Round(s.Usage * capacity)
		return math.Abs(whole/capacity-s.Usage) > usageGrain*1.001
	})
}

// withBlocks is the configuration with a pool that takes every request.
func (r *Run) withBlocks(blocks int) simengine.Config {
	c := r.Engine
	most := 2
	for i := range r.Requests {
		most = max(most, r.Requests[i].Prompt+r.Requests[i].Output)
	}
	c.Blocks = max(blocks, c.BlocksFor(most))
	c.MaxModelLen = min(c.MaxModelLen, c.KVTokens())
	return c
}
