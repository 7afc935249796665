package main

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// series is one contestant on one body, and what it took in each round.
type series struct {
	by     string
	body   body
	run    func([]byte)
	times  int       // runs per round
	took   []float64 // ns of CPU for one run, by round
	allocs float64   // of one run, warm
}

// slice is how long a contestant runs in one round. The shorter slices are, the
// more alike is what those that are compared meet: the speed of a virtual machine
// was seen to change by two thirds, for some milliseconds at a time.
const slice = 2 * time.Millisecond

func newSeries(by string, b body, f func([]byte)) *series {
	return &series{by: by, body: b, run: f}
}

// measure runs all by turns. What garbage costs comes when it comes, as in a server:
// whoever makes it pays for its allocations in each round, and for the collector in
// some.
func measure(all []*series, rounds int) {
	for _, s := range all {
		s.run(s.body.text) // warm
		s.allocs = testing.AllocsPerRun(5, func() { s.run(s.body.text) })
		s.times = 1
		if once := s.once(); once < float64(slice) {
			s.times = int(float64(slice)/once) + 1
		}
	}
	for range rounds {
		for _, s := range all {
			s.took = append(s.took, s.once())
		}
	}
}

// once is the CPU time of one run, ns, as the mean over a slice.
func (s *series) once() float64 {
	began := cpu()
	for range s.times {
		s.run(s.body.text)
	}
	return float64(cpu()-began) / float64(s.times)
}

// cpu is what the process has used, with all its threads. Getrusage knows that to
// the kernel's tick only, which is a third of a slice.
func cpu() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

func (s *series) median() float64 { return medianOf(s.took) }

// rate is in MB of body per second of CPU.
func (s *series) rate() float64 { return float64(len(s.body.text)) / s.median() * 1e3 }

// against is how many times the other's time s takes: the median over rounds.
func (s *series) against(other *series) float64 {
	factors := make([]float64, len(s.took))
	for i := range factors {
		factors[i] = s.took[i] / other.took[i]
	}
	return medianOf(factors)
}

// perByte is the other's bytes per second in those of s.
func (s *series) perByte(other *series) float64 {
	return s.against(other) * float64(len(other.body.text)) / float64(len(s.body.text))
}

func medianOf(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func find(all []*series, by, body string) *series {
	i := slices.IndexFunc(all, func(s *series) bool { return s.by == by && s.body.name == body })
	return all[i]
}
