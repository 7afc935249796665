package rivals

import (
	"math"
	"time"
)

// llm-d's router hashes 256 bytes as 64 pseudo-tokens and remembers them for
// each upstream in an LRU of as many entries as the engine has blocks, which
// are smaller: its model of a cache is up to four times too large.
const (
	llmdBlock    = 256 // bytes
	llmdCapacity = 31_250
	// llmdLongest is how much of a prompt is hashed, tokens.
	llmdLongest = 131_072
)

// llmdIndex restates its approximate prefix index. Generous: heads outlive
// tails, as since its fix of September 2026; only leading blocks count; and the
// insertion isn't late.
type llmdIndex struct {
	book
	chance
	cache  *lru
	scrape time.Duration
}

func newLLMDIndex(env Env, s settings) llmdIndex {
	return llmdIndex{newBook(env), chance{env.Seed}, newLRU(env, llmdCapacity), time.Duration(s["scrape_ms"]) * time.Millisecond}
}

// ScrapeEvery is its own scrape interval.
func (p *llmdIndex) ScrapeEvery(time.Duration, time.Duration) time.Duration { return p.scrape }

func (p *llmdIndex) Scraped(now time.Duration, up int, page *Page) {
	p.book.Scraped(now, up, page)
	if page != nil && page.BlockTokens > 0 && page.CapacityTokens > 0 {
		p.cache.resize(up, int(page.CapacityTokens/page.BlockTokens))
	}
}

func (p *llmdIndex) chain(q *Request) []int32 {
	chain := q.Blocks(llmdBlock)
	return chain[:min(len(chain), llmdLongest*bytesPerToken/llmdBlock)]
}

// matches are the shares of the prompt's blocks that upstreams hold, the open last
// one included.
func (p *llmdIndex) matches(q *Request, chain []int32) func(up int) float64 {
	blocks := (q.Bytes + llmdBlock - 1) / llmdBlock
	held := p.cache.held(chain)
	return func(up int) float64 { return float64(held[up]) / float64(max(blocks, 1)) }
}

func (p *llmdIndex) take(now time.Duration, q *Request, up int, chain []int32, match float64) {
	p.send(now, q, up, float64(q.Tokens), float64(q.Tokens)*(1-match))
	p.cache.put(up, chain)
}

// llmd is the default profile (loader/defaults.go): queue, KV usage and prefix,
// each scored from 0 to 1 and weighted 2, 2, 3; ties by chance. Scores are of
// the last page, however old; without one they are of zeros.
type llmd struct {
	llmdIndex
	set settings
}

func newLLMD(env Env, s settings) Policy { return &llmd{newLLMDIndex(env, s), s} }

func (p *llmd) Pick(now time.Duration, q *Request, targets []Target) int {
	low, high := math.MaxInt, 0
	for _, t := range targets {
		w := p.up[t.Upstream].page.Waiting
		low, high = min(low, w), max(high, w)
	}
	chain := p.chain(q)
	match := p.matches(q, chain)
	best := least(targets, &p.chance, func(up int) float64 {
		page, queue := &p.up[up].page, 1.0
		if high > low {
			queue = float64(high-page.Waiting) / float64(high-low)
		}
		return -(p.set["queue"]*queue + p.set["kv"]*(1-page.KVUsage) + p.set["prefix"]*match(up))
	})
	up := targets[best].Upstream
	p.take(now, q, up, chain, match(up))
	return best
}

// llmdSticky is the configuration recommended since August 2026: only those
// that hold most of the prompt, unless the best of them is predicted to be
// slower by more than a bound than the best other; among what is left the one
// with the fewest uncached tokens in flight. Its rate has to be calibrated by
// hand; the default is the original's.
type llmdSticky struct {
	llmdIndex
	set settings
}

func newLLMDSticky(env Env, s settings) Policy { return &llmdSticky{newLLMDIndex(env, s), s} }

// tokenLoadMax is where its token-load score ends.
const tokenLoadMax = 4_194_304

func (p *llmdSticky) Pick(now time.Duration, q *Request, targets []Target) int {
	chain := p.chain(q)
	sticky := make([]bool, len(targets))
	match := p.matches(q, chain)
	bestSticky, bestOther := math.Inf(1), math.Inf(1)
	for i, t := range targets {
		wait := p.up[t.Upstream].pending / p.set["rate"]
		if sticky[i] = !t.Tried && match(t.Upstream) >= p.set["match"]; sticky[i] {
			bestSticky = min(bestSticky, wait)
		} else if !t.Tried {
			bestOther = min(bestOther, wait)
		}
	}
	only := !math.IsInf(bestSticky, 1) && bestSticky-bestOther <= p.set["wait_s"]
	holds := make([]bool, len(p.up))
	for i, t := range targets {
		holds[t.Upstream] = sticky[i]
	}
	best := least(targets, &p.chance, func(up int) float64 {
		if only && !holds[up] {
			return math.Inf(1)
		}
		return min(p.up[up].pending+float64(q.Tokens)*(1-match(up)), tokenLoadMax)
	})
	up := targets[best].Upstream
	p.take(now, q, up, chain, match(up))
	return best
}
