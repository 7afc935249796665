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
	pods  [][]int32 // by block: upstreams that it went to
}

func newAIBrix(env Env, s settings) Policy {
	return &aibrix{book: newBook(env), chance: chance{env.Seed}, set: s, order: newBlockList(int(s["blocks"]))}
}

func (p *aibrix) Pick(now time.Duration, q *Request, targets []Target) int {
	chain := q.Blocks(int(p.set["block"]))
	low, high, sum, squares := math.Inf(1), 0.0, 0.0, 0.0
	for _, t := range targets {
		n := float64(p.up[t.Upstream].inFlight)
		low, high, sum, squares = min(low, n), max(high, n), sum+n, squares+n*n
	}
	mean := sum / float64(len(targets))
	bound := mean + p.set["sigma"]*math.Sqrt(max(squares/float64(len(targets))-mean*mean, 0))
	gap := high-low > p.set["gap"]
	matched := p.match(chain)
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
func (p *aibrix) match(chain []int32) []int {
	matched := make([]int, len(p.up))
	for i, block := range chain {
		some := false
		if p.order.has(block) {
			for _, up := range p.pods[block] {
				if matched[up] == i {
					matched[up] = i + 1
					some = true
				}
			}
		}
		if !some {
			break
		}
	}
	return matched
}

func (p *aibrix) note(up int, chain []int32) {
	for i := len(chain) - 1; i >= 0; i-- {
		block := chain[i]
		if !p.order.has(block) {
			for len(p.pods) <= int(block) {
				p.pods = append(p.pods, nil)
			}
			p.pods[block] = p.pods[block][:0]
		}
		p.order.touch(block)
		if !slices.Contains(p.pods[block], int32(up)) {
			p.pods[block] = append(p.pods[block], int32(up))
		}
	}
}
