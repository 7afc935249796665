package rivals

import (
	"sort"
	"time"
)

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
	sent   []map[uint64]time.Duration
	active []map[uint64]int
	swept  time.Duration
}

func newDynamo(env Env, s settings) Policy {
	p := &dynamo{book: newBook(env), chance: chance{env.Seed}, block: env.BlockTokens, set: s}
	if s["events"] > 0 {
		p.truth = env.Truth
	}
	for range env.Upstreams {
		p.sent = append(p.sent, make(map[uint64]time.Duration))
		p.active = append(p.active, make(map[uint64]int))
	}
	return p
}

func (p *dynamo) overlap(now time.Duration, up int, q *Request, chain []uint64) int {
	if p.truth != nil {
		return p.truth.Cached(up, q) / p.block
	}
	ttl, sent := p.set["ttl_s"], p.sent[up]
	// Whoever was sent a block was sent those before it, at that time or later.
	return sort.Search(len(chain), func(i int) bool {
		at, ok := sent[chain[i]]
		return !ok || (now-at).Seconds() > ttl
	})
}

func (p *dynamo) Pick(now time.Duration, q *Request, targets []Target) int {
	chain := q.TokenChain(p.block)
	p.sweep(now)
	held := make(map[int]int, len(targets))
	best := least(targets, &p.chance, func(up int) float64 {
		held[up] = p.overlap(now, up, q, chain)
		tokens := p.up[up].pending + float64(q.PromptTokens-held[up]*p.block)
		return p.set["prefill"]*tokens/float64(p.block) + float64(len(p.active[up])+p.fresh(up, chain))
	})
	up := targets[best].Upstream
	f := p.send(now, q, up, float64(q.PromptTokens), float64(q.PromptTokens-held[up]*p.block))
	f.chain = chain
	for _, h := range chain {
		p.active[up][h]++
		if p.truth == nil {
			p.sent[up][h] = now
		}
	}
	return best
}

// fresh is how many of the chain's blocks no request in flight there has.
// Where one isn't there, none behind it is.
func (p *dynamo) fresh(up int, chain []uint64) int {
	active := p.active[up]
	return len(chain) - sort.Search(len(chain), func(i int) bool { return active[chain[i]] == 0 })
}

func (p *dynamo) End(_ time.Duration, id uint64, _ Outcome, _ *Usage) {
	f := p.end(id)
	if f == nil {
		return
	}
	for _, h := range f.chain {
		if p.active[f.up][h]--; p.active[f.up][h] == 0 {
			delete(p.active[f.up], h)
		}
	}
}

// sweep forgets what is out of date.
func (p *dynamo) sweep(now time.Duration) {
	if now-p.swept < 30*time.Second {
		return
	}
	p.swept = now
	for _, sent := range p.sent {
		for h, at := range sent {
			if (now - at).Seconds() > p.set["ttl_s"] {
				delete(sent, h)
			}
		}
	}
}
