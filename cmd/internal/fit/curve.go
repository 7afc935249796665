package fit

import (
	"math"
	"slices"
	"sort"
	"time"
)

// Point is what an engine shows at one moment.
type Point struct {
	At               time.Duration // since the first arrival
	Running, Waiting float64
	Usage            float64 // of KV blocks, 0 to 1
}

// at returns what the simulated engines showed at t, together.
func (tl *Timeline) at(t time.Duration) Point {
	p := Point{At: t}
	for i := range tl.steps {
		s := &tl.steps[i]
		n := sort.Search(len(s.ended), func(i int) bool { return s.ended[i] > t })
		if n == 0 {
			continue
		}
		shown := s.shown[n-1]
		p.Running += float64(shown.running)
		p.Waiting += float64(shown.waiting)
		p.Usage += float64(shown.usage) / float64(len(tl.steps))
	}
	return p
}

// Curves returns the recorded samples and the simulated ones of the same
// moments.
func (r *Run) Curves(tl *Timeline) (recorded, simulated []Point) {
	shift := r.shift(func(t time.Duration) (running, waiting float64) {
		p := tl.at(t)
		return p.Running, p.Waiting
	})
	for _, s := range r.Samples {
		at := s.At + shift
		recorded = append(recorded, Point{At: at, Running: float64(s.Running), Waiting: float64(s.Waiting), Usage: s.Usage})
		simulated = append(simulated, tl.at(at))
	}
	return recorded, simulated
}

// shiftGrain is how exactly the clock of the samples is aligned: less than a
// step.
const shiftGrain = 10 * time.Millisecond

// shift returns what to add to the samples' time to make it the requests'. The
// first sample was taken in the tick in which the first step ended; within these
// bounds it is where the curves fit best.
func (r *Run) shift(shows func(t time.Duration) (running, waiting float64)) time.Duration {
	if len(r.Samples) == 0 {
		return 0
	}
	first := slices.MinFunc(r.Requests, func(a, b Request) int { return int(min(max(a.First-b.First, -1), 1)) }).First
	tick := r.tick()
	from, to := -r.Samples[0].At, first-r.Samples[0].At+tick
	// Coarse passes over a wide range, then finer ones.
	for grain := (to - from) / 100; ; grain = max(grain/10, shiftGrain) {
		grain = max(grain, shiftGrain)
		best := r.bestShift(shows, from, to, grain)
		if grain == shiftGrain {
			return best
		}
		from, to = best-grain, best+grain
	}
}

func (r *Run) bestShift(shows func(t time.Duration) (running, waiting float64), from, to, grain time.Duration) time.Duration {
	best, least := from, math.Inf(1)
	for shift := from; shift <= to; shift += grain {
		off := 0.0
		for _, s := range r.Samples {
			running, waiting := shows(s.At + shift)
			if s.Running >= 0 {
				off += math.Abs(running - float64(s.Running))
			}
			if s.Waiting >= 0 {
				off += math.Abs(waiting - float64(s.Waiting))
			}
		}
		if off < least {
			best, least = shift, off
		}
	}
	return best
}

// tick is the time between samples.
func (r *Run) tick() time.Duration {
	var gaps []float64
	for i := 1; i < len(r.Samples); i++ {
		gaps = append(gaps, (r.Samples[i].At - r.Samples[i-1].At).Seconds())
	}
	if len(gaps) == 0 {
		return time.Second
	}
	return seconds(median(gaps))
}
