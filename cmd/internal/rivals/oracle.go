package rivals

import "time"

// oracle picks the upstream whose true state gives the first token soonest. It
// is greedy: it knows everything of now and nothing of who comes next.
type oracle struct {
	chance
	truth Truth
}

func newOracle(env Env, _ settings) Policy { return &oracle{chance{env.Seed}, env.Truth} }

func (p *oracle) Pick(now time.Duration, q *Request, targets []Target) int {
	return least(targets, &p.chance, func(up int) float64 {
		first, _ := p.truth.Forecast(now, up, q)
		return float64(first)
	})
}

func (*oracle) FirstToken(time.Duration, uint64)           {}
func (*oracle) End(time.Duration, uint64, Outcome, *Usage) {}
func (*oracle) Scraped(time.Duration, int, *Page)          {}

// replicating is the oracle that also counts what it does to who comes next:
// its own prefill once more, since others wait for it, and both times less where
// a popular prefix gains a copy. A missed block held by H of N upstreams and
// carried by share f of the recent requests counts H/(H + α·max(0, f·N - spare)).
type replicating struct {
	oracle
	block   int
	alpha   float64
	spare   float64
	own     float64
	window  [][]int32
	next    int
	counts  tally
	holders []int
}

// popularTokens is how much of a prompt is looked at for being popular, tokens.
const popularTokens = 16_384

func newReplicating(env Env, s settings) Policy {
	return &replicating{
		oracle: oracle{chance{env.Seed}, env.Truth}, block: env.BlockTokens, alpha: s["alpha"], spare: s["spare"], own: s["own"],
		window: make([][]int32, int(s["window"])*env.Upstreams),
	}
}

func (p *replicating) Pick(now time.Duration, q *Request, targets []Target) int {
	chain := q.TokenBlocks(p.block)
	chain = chain[:min(len(chain), popularTokens/p.block)]
	weights := p.weights(q, chain, targets)
	best := least(targets, &p.chance, func(up int) float64 {
		first, cached := p.truth.Forecast(now, up, q)
		missed := q.PromptTokens - cached
		saved := 0.0
		for _, w := range weights[min(cached/p.block, len(weights)):] {
			saved += (1 - w) * float64(p.block)
		}
		work := p.truth.Work(up, missed, cached)
		discount := work * min(saved/float64(max(missed, 1)), 1)
		return float64(first-now)/1e9 + p.own*work - (1+p.own)*discount
	})
	p.note(chain)
	return best
}

// weights are what the blocks of a chain count where they are missed.
func (p *replicating) weights(q *Request, chain []int32, targets []Target) []float64 {
	if cap(p.holders) < len(chain)+1 {
		p.holders = make([]int, len(chain)+1)
	}
	holders := p.holders[:len(chain)+1]
	clear(holders)
	for _, t := range targets {
		holders[min(p.truth.Cached(t.Upstream, q)/p.block, len(chain))]++
	}
	weights := make([]float64, len(chain))
	held := 0
	for i := len(chain); i > 0; i-- {
		held += holders[i]
		weights[i-1] = 1
		excess := float64(p.counts.get(chain[i-1]))/float64(len(p.window))*float64(len(targets)) - p.spare
		if held > 0 && excess > 0 {
			weights[i-1] = float64(held) / (float64(held) + p.alpha*excess)
		}
	}
	return weights
}

func (p *replicating) note(chain []int32) {
	for _, block := range p.window[p.next] {
		p.counts.drop(block)
	}
	p.window[p.next] = chain
	for _, block := range chain {
		p.counts.add(block)
	}
	p.next = (p.next + 1) % len(p.window)
}
