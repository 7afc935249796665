package cluster

import (
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/rivals"
)

// truth shows the engines to those who may see them.
type truth struct{ s *sim }

func (t truth) Cached(upstream int, q *rivals.Request) int {
	r := t.s.replicas[upstream]
	if !r.process {
		return 0
	}
	turn := t.s.turn(&t.s.jobs[t.s.attempts[q.ID]])
	req := t.s.engineRequest(q.ID, turn)
	size := r.cfg.BlockSize
	return t.s.clock.Engine(upstream).Cached(req.Blocks[:min(len(req.Blocks), (turn.Prompt-1)/size)]) * size
}

// never is when an engine that isn't there answers.
const never = 365 * 24 * time.Hour

func (t truth) Forecast(now time.Duration, upstream int, q *rivals.Request) (time.Duration, int) {
	r := t.s.replicas[upstream]
	if !r.process || !r.reached {
		return never, 0
	}
	req := t.s.engineRequest(q.ID, t.s.turn(&t.s.jobs[t.s.attempts[q.ID]]))
	f := t.s.clock.Engine(upstream).Forecast(now, &req)
	return f.First, f.Cached
}

func (t truth) Work(upstream, tokens, cached int) float64 {
	c := &t.s.replicas[upstream].cfg.Cost
	n := float64(tokens)
	return c.Base.Seconds() + c.PrefillToken*n + c.AttentionTerm*n*(float64(cached)+n/2)
}
