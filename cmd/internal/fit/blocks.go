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

// momentsMax bounds how many moments are looked at, of each of which all
// requests tell.
const momentsMax = 2000

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
	prefilling int
	blocks     float64 // held, if nobody was preempted
}

// moment counts what was held at t.
func (r *Run) moment(t time.Duration) moment {
	var m moment
	size := float64(r.Engine.BlockSize)
	for i := range r.Requests {
		q := &r.Requests[i]
		if t < q.entered() || t >= q.Last {
			continue
		}
		tokens := float64(q.Prompt)
		if t < q.First {
			m.prefilling++
		} else if q.Last > q.First {
			tokens += 1 + q.share(t)*float64(q.Output-1)
		}
		m.blocks += math.Ceil(tokens / size)
	}
	return m
}

// entered is when a request got into a batch, or the latest that can have been.
func (r *Request) entered() time.Duration {
	if r.Scheduled < 0 {
		return r.First
	}
	return r.Scheduled
}

// crowd counts requests by their own times.
type crowd struct{ arrived, entered, left []time.Duration }

func (r *Run) crowd() crowd {
	var c crowd
	for i := range r.Requests {
		q := &r.Requests[i]
		c.arrived = append(c.arrived, q.Arrived)
		c.entered = append(c.entered, q.entered())
		c.left = append(c.left, q.Last)
	}
	for _, list := range [][]time.Duration{c.arrived, c.entered, c.left} {
		slices.Sort(list)
	}
	return c
}

// at is who ran and who waited at t, if nobody was preempted.
func (c crowd) at(t time.Duration) (running, waiting int) {
	upTo := func(list []time.Duration) int {
		n, _ := slices.BinarySearch(list, t+1)
		return n
	}
	entered := upTo(c.entered)
	return entered - upTo(c.left), upTo(c.arrived) - entered
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
	c, stride := r.crowd(), 1+len(r.Requests)/momentsMax
	for i := 0; i < len(r.Requests); i += stride {
		at := r.Requests[i].First
		m := r.moment(at)
		m.blocks /= float64(r.Replicas)
		most = max(most, m.blocks)
		running, waiting := c.at(at)
		if waiting > 0 && running < r.Engine.MaxNumSeqs*r.Replicas && m.prefilling == 0 {
			short = append(short, m.blocks)
		}
	}
	// Waiting for a step or two is no shortage.
	if len(short) > len(r.Requests)/stride/20+3 {
		return pool{blocks: int(median(short)) + 1, full: true}
	}
	r.note("the KV pool was never short: its size can't be told and is taken as twice what was in use")
	return pool{blocks: int(2*most) + 1}
}

// blocksByUsage compares the recorded usage with what the requests held.
func (r *Run) blocksByUsage() (pool, bool) {
	c := r.crowd()
	shift := r.shift(func(t time.Duration) (float64, float64) {
		running, waiting := c.at(t)
		return float64(running), float64(waiting)
	})
	var sizes []float64
	top := 0.0
	stride := 1 + len(r.Samples)/momentsMax
	for i, s := range r.Samples {
		top = max(top, s.Usage)
		if running, _ := c.at(s.At + shift); i%stride != 0 || s.Usage < 0.02 || running == 0 || running != s.Running {
			continue // if fewer run than there should, someone was preempted
		}
		// Someone in prefill holds an unknown part of his prompt's blocks.
		if m := r.moment(s.At + shift); m.prefilling == 0 {
			sizes = append(sizes, m.blocks/s.Usage/float64(r.Replicas))
		}
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
