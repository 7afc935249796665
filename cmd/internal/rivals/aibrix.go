package rivals

import (
	"math"
	"slices"
	"time"
)

// aibrix is AIBrix's prefix-cache policy (prefix_cache.go): out of balance, only
// those with the fewest requests; among these the longest match whose requests
// are at most the mean and sigma standard deviations; else the fewest requests.
// Its index holds so many blocks for the whole cluster. Generous: heads outlive
// tails in it and matches count as use.
type aibrix struct {
	book
	chance
	set   settings
	order *blockList
	pods  map[uint64][]int32 // upstreams that a block went to
}

func newAIBrix(env Env, s settings) Policy {
	return &aibrix{newBook(env), chance{env.Seed}, s, newBlockList(int(s["blocks"])), make(map[uint64][]int32)}
}

func (p *aibrix) Pick(now time.Duration, q *Request, targets []Target) int {
	chain := q.Chain(int(p.set["block"]))
	low, high, sum, squares := math.Inf(1), 0.0, 0.0, 0.0
	for _, t := range targets {
		n := float64(p.up[t.Upstream].inFlight)
		low, high, sum, squares = min(low, n), max(high, n), sum+n, squares+n*n
	}
	mean := sum / float64(len(targets))
	bound := mean + p.set["sigma"]*math.Sqrt(max(squares/float64(len(targets))-mean*mean, 0))
	gap := high-low > p.set["gap"]
	matched := p.match(chain, targets)
	score := func(up int) float64 {
		n := float64(p.up[up].inFlight)
		switch {
		case gap && n > low:
			return math.Inf(1)
		case matched[up] > 0 && n <= bound:
			// Match in percent of the prompt's blocks first, then requests.
			return -1e9*float64(matched[up]*100/max(len(chain), 1)+1) + n
		}
		return n
	}
	best := least(targets, &p.chance, score)
	up := targets[best].Upstream
	p.send(now, q, up, 0, 0)
	p.note(up, chain)
	return best
}

// match is the number of leading blocks that went to each upstream.
func (p *aibrix) match(chain []uint64, targets []Target) map[int]int {
	matched := make(map[int]int, len(targets))
	for i, h := range chain {
		any := false
		for _, up := range p.pods[h] {
			if matched[int(up)] == i {
				matched[int(up)] = i + 1
				any = true
			}
		}
		if !any {
			break
		}
	}
	return matched
}

func (p *aibrix) note(up int, chain []uint64) {
	for i := len(chain) - 1; i >= 0; i-- {
		h := chain[i]
		if !p.order.has(h) && p.order.len() >= p.order.most {
			delete(p.pods, p.order.oldest())
		}
		p.order.touch(h)
		if !slices.Contains(p.pods[h], int32(up)) {
			p.pods[h] = append(p.pods[h], int32(up))
		}
	}
}
