package fit

import (
	"math"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// balancer picks among data-parallel engines as vLLM 0.19's front end does: the
// least 4·waiting + running, by counts that are 100 ms old at most, to which it
// adds what it sent since.
type balancer struct {
	taken  time.Duration
	scores []int
}

const (
	balanceEvery  = 100 * time.Millisecond
	balanceWeight = 4 // of a waiting request
)

func (b *balancer) pick(now time.Duration, engines []*simengine.Engine) int {
	if b.scores == nil || now >= b.taken+balanceEvery {
		b.taken, b.scores = now, b.scores[:0]
		for _, e := range engines {
			s := e.Stats()
			b.scores = append(b.scores, balanceWeight*s.Waiting+s.Running)
		}
	}
	to, least := 0, math.MaxInt
	for i, score := range b.scores {
		if score < least {
			to, least = i, score
		}
	}
	b.scores[to] += balanceWeight
	return to
}
