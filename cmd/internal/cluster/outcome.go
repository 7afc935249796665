package cluster

import (
	"cmp"
	"slices"
	"time"
)

// Outcome is what clients saw of a run.
type Outcome struct {
	Overloaded bool // the run was given up
	Requests   int  // that are counted
	Failed     int  // of these
	Duration   time.Duration

	TTFT, TPOT, E2E []float64 // milliseconds, sorted; of requests that didn't fail

	PromptTokens, CachedTokens, OutputTokens int64
	PerUpstream                              []int64 // requests sent to each, warm-up included
	Stays                                    []Stay  // of all requests that ended, warm-up included
}

// Stay is when a request was in flight at the upstream that answered it.
type Stay struct {
	Upstream  int
	Sent, End time.Duration
}

func (s *sim) outcome() *Outcome {
	o := &Outcome{Overloaded: s.over, Duration: s.now, PerUpstream: make([]int64, len(s.replicas))}
	counted := s.counted()
	for i := range s.jobs {
		j := &s.jobs[i]
		if j.up >= 0 {
			o.PerUpstream[j.up]++
		}
		if j.up >= 0 && j.done {
			o.Stays = append(o.Stays, Stay{int(j.up), j.sent, j.end})
		}
		if !counted(j) || !j.done {
			continue
		}
		o.Requests++
		if j.failed {
			o.Failed++
			continue
		}
		turn := s.turn(j)
		o.TTFT = append(o.TTFT, ms(j.first-j.sent))
		o.E2E = append(o.E2E, ms(j.end-j.sent))
		if turn.Output > 1 {
			o.TPOT = append(o.TPOT, ms(j.end-j.first)/float64(turn.Output-1))
		}
		o.PromptTokens += int64(turn.Prompt)
		o.CachedTokens += int64(max(j.cached, 0))
		o.OutputTokens += int64(turn.Output)
	}
	slices.Sort(o.TTFT)
	slices.Sort(o.TPOT)
	slices.Sort(o.E2E)
	return o
}

// closedWarmup is the least share of a closed loop's time that isn't counted:
// until then there are fewer sessions than later.
const closedWarmup = 0.3

// counted tells which requests count. In a closed loop those that come after
// the last session has begun don't: there are fewer and fewer.
func (s *sim) counted() func(*job) bool {
	if s.load.Closed {
		span := float64(s.load.Span) * s.stretch
		from, to := time.Duration(max(s.cfg.Warmup, closedWarmup)*span), time.Duration(span)
		return func(j *job) bool { return j.sent >= from && j.sent <= to }
	}
	sent := make([]time.Duration, len(s.jobs))
	for i := range s.jobs {
		sent[i] = s.jobs[i].sent
	}
	slices.SortFunc(sent, cmp.Compare[time.Duration])
	from := sent[int(s.cfg.Warmup*float64(len(sent)))]
	return func(j *job) bool { return j.sent >= from }
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
