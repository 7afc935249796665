package rivals

import "time"

// dynamo is NVIDIA Dynamo's KV router (selector/default.rs): the least of
//
//	prefill · (uncached prefill tokens, queued and own) / block  +  decode blocks
//
// where decode blocks are the distinct blocks of all requests in flight there
// with this one's. What a cache holds is assumed for a time (ttl_s, the
// approximate mode), or told by the engine's events. It has the model's
// tokenizer. Generous: events come without delay.
type dynamo struct {
	book
	chance
	block  int
	set    settings
	truth  Truth // nil without events
	sent   []assumed
	active []tally
	swept  time.Duration
}

// assumed is when each block was sent to an upstream last.
type assumed struct {
	pages
	at []time.Duration // by place; never where no block is
}

const never = time.Duration(-1)

func (a *assumed) note(now time.Duration, block int32) {
	place, ok := a.find(block)
	if !ok || a.at[place] == never {
		place = a.take(block)
		for len(a.at) < a.size() {
			a.at = append(a.at, never)
		}
	}
	a.at[place] = now
}

func newDynamo(env Env, s settings) Policy {
	p := &dynamo{book: newBook(env), chance: chance{env.Seed}, block: env.BlockTokens, set: s}
	if s["events"] > 0 {
		p.truth = env.Truth
	}
	p.sent, p.active = make([]assumed, env.Upstreams), make([]tally, env.Upstreams)
	return p
}

func (p *dynamo) overlap(now time.Duration, up int, q *Request, chain []int32) int {
	if p.truth != nil {
		return p.truth.Cached(up, q) / p.block
	}
	// Whoever was sent a block was sent those before it, at that time or later.
	sent := &p.sent[up]
	return leading(chain, func(block int32) bool {
		place, ok := sent.find(block)
		return ok && sent.at[place] != never && !p.stale(now, sent.at[place])
	})
}

func (p *dynamo) stale(now, at time.Duration) bool { return (now - at).Seconds() > p.set["ttl_s"] }

func (p *dynamo) Pick(now time.Duration, q *Request, targets []Target) int {
	chain := q.TokenBlocks(p.block)
	p.sweep(now)
	held := make([]int, len(p.up))
	best := least(targets, &p.chance, func(up int) float64 {
		held[up] = p.overlap(now, up, q, chain)
		tokens := p.up[up].pending + float64(q.PromptTokens-held[up]*p.block)
		return p.set["prefill"]*tokens/float64(p.block) + float64(p.active[up].some+p.fresh(up, chain))
	})
	up := targets[best].Upstream
	f := p.send(now, q, up, float64(q.PromptTokens), float64(q.PromptTokens-held[up]*p.block))
	f.chain = chain
	for _, block := range chain {
		p.active[up].add(block)
		if p.truth == nil {
			p.sent[up].note(now, block)
		}
	}
	return best
}

// fresh is how many of the chain's blocks no request in flight there has.
// Where one isn't there, none behind it is.
func (p *dynamo) fresh(up int, chain []int32) int {
	return len(chain) - leading(chain, func(block int32) bool { return p.active[up].get(block) > 0 })
}

func (p *dynamo) End(_ time.Duration, id uint64, _ Outcome, _ *Usage) {
	f := p.end(id)
	if f == nil {
		return
	}
	for _, block := range f.chain {
		p.active[f.up].drop(block)
	}
}

// sweep forgets what is out of date.
func (p *dynamo) sweep(now time.Duration) {
	if now-p.swept < 30*time.Second {
		return
	}
	p.swept = now
	for i := range p.sent {
		sent := &p.sent[i]
		for place, at := range sent.at {
			if at != never && p.stale(now, at) {
				sent.at[place] = never
				sent.drop(int32(place))
			}
		}
	}
}
