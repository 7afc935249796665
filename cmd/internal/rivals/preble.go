package rivals

import (
	"slices"
	"time"
)

// preble is Preble's E2 (ICLR 2025, global_scheduler_with_time.py). Where the
// longest match is longer than what is left of the prompt it exploits: the
// least loaded of those that hold it. Else it explores: the least load with its
// own prefill. Load is what a window of three minutes brought: prefill of what
// missed, and the decoding of those in flight. Where the loads are out of
// balance by the factor, exploiting goes to the least loaded of all, which
// copies the prefix. The cost of what is evicted is left out. Generous: the
// times for which it needs a fit are the simulated engine's.
type preble struct {
	worker
	set     settings
	recent  []spent // of the window, oldest first
	prefill []float64
	outputs []float64 // lengths of the last answers, in order of their ends
	sorted  []float64 // the same by length
}

type spent struct {
	at      time.Duration
	up      int
	seconds float64
}

const (
	prebleWindow  = 3 * time.Minute
	prebleAnswers = 101
)

func newPreble(env Env, s settings) Policy {
	return &preble{worker: newWorker(env), set: s, prefill: make([]float64, env.Upstreams)}
}

// median length of an answer.
func (p *preble) median() float64 {
	if len(p.outputs) == 0 {
		return 100
	}
	return p.sorted[len(p.sorted)/2]
}

func (p *preble) Pick(now time.Duration, q *Request, targets []Target) int {
	p.age(now)
	chain := q.Blocks(workerBlock)
	held := p.cache.held(chain)
	most := 0
	for _, t := range targets {
		if !t.Tried {
			most = max(most, held[t.Upstream])
		}
	}
	median := p.median()
	loads := make([]float64, len(p.up))
	low, high := -1.0, 0.0
	for _, t := range targets {
		l := p.prefill[t.Upstream] + float64(p.up[t.Upstream].inFlight)*median*p.set["decode_us"]*1e-6
		loads[t.Upstream] = l
		high = max(high, l)
		if low < 0 || l < low {
			low = l
		}
	}
	perToken := p.set["prefill_us"] * 1e-6
	exploit := 2*most*workerBlock > q.Bytes && high <= p.set["balance"]*low
	best := least(targets, &p.chance, func(up int) float64 {
		cost := loads[up]
		switch {
		case exploit && held[up] < most:
			return 1e12 + cost
		case !exploit:
			cost += perToken * missing(q, held[up])
		}
		return cost
	})
	up := targets[best].Upstream
	missed := missing(q, held[up])
	p.prefill[up] += missed * perToken
	p.recent = append(p.recent, spent{now, up, missed * perToken})
	p.send(now, q, up, float64(q.Tokens), missed).chain = chain
	p.cache.put(up, chain)
	return best
}

// age lets go of what has left the window.
func (p *preble) age(now time.Duration) {
	n := 0
	for n < len(p.recent) && now-p.recent[n].at > prebleWindow {
		p.prefill[p.recent[n].up] -= p.recent[n].seconds
		n++
	}
	p.recent = slices.Delete(p.recent, 0, n)
}

func (p *preble) End(now time.Duration, id uint64, o Outcome, usage *Usage) {
	p.worker.End(now, id, o, usage)
	if usage == nil {
		return
	}
	if len(p.outputs) == prebleAnswers {
		at, _ := slices.BinarySearch(p.sorted, p.outputs[0])
		p.sorted = slices.Delete(p.sorted, at, at+1)
		p.outputs = p.outputs[1:]
	}
	length := float64(usage.OutputTokens)
	at, _ := slices.BinarySearch(p.sorted, length)
	p.outputs, p.sorted = append(p.outputs, length), slices.Insert(p.sorted, at, length)
}
