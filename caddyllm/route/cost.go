package route

import "time"

// The constants of the cost. They are those of the decision's ablation over
// nine workloads; within a factor of two, each moves the result by a few
// percent only.
const (
	// requestWork (A0) is what a request costs beyond its tokens, prefill
	// tokens: a step has to begin and end for it.
	requestWork = 1000
	// attention (K) is what a token of context adds to each prefilled token,
	// relative to the token's own cost.
	attention = 4.5e-5
	// stall (θ) is how much each decoding request slows a prefill.
	stall = 0.05
	// replication (α) is how strongly demand beyond what one upstream can
	// carry makes a copy of a popular block worth its cost.
	replication = 8
)

// candidate is a target with what choosing it would mean.
type candidate struct {
	up      *upstream
	blocks  int32   // leading blocks held
	prompt  float64 // tokens
	matched float64 // tokens
	work    float64 // S, prefill tokens
	worth   float64 // S'
	ahead   float64 // W
	stalls  float64 // θ·decoding
	rate    float64 // prefill tokens per second
	memory  float64 // seconds
	others  others  // what others bring
	known   bool    // and whether a page tells
	cost    float64 // seconds
	first   float64 // expected time to the first token, seconds
	last    bool    // only if there is no other
	probe   bool
	tried   bool
}

// maxPrompt bounds what one request can make us believe of its length, tokens.
const maxPrompt = 1 << 24

// weigh fills r.candidates, one for each target.
func (r *Router) weigh(now time.Time, q *Request, targets []Target) {
	r.candidates = r.candidates[:0]
	for len(r.hint) < len(targets) {
		r.hint = append(r.hint, nil)
	}
	for i := range targets {
		// Pools hardly change, so the upstream is the one of last time.
		u := r.hint[i]
		if u == nil || u.id != targets[i].ID {
			u = r.upstream(now, targets[i].ID)
			if r.hint[i] = u; u.slot < 0 {
				r.hint[i] = nil
			}
		}
		u.seen = now
		r.candidates = append(r.candidates, candidate{up: u, tried: targets[i].Tried})
	}
	r.weighAll(now, q)
}

// weighAll computes the terms of the candidates.
func (r *Router) weighAll(now time.Time, q *Request) {
	if n := len(r.upstreams); n > len(r.held) {
		r.held = make([]int32, n+n/4)
	}
	r.index.Match(q.Chain, r.held[:len(r.upstreams)])
	r.discount(q)
	rates, block, unknown := r.rates(now), r.blockTokens(q.Model), r.guess(now)
	prompt := min(r.tokens.of(q.Model)*float64(max(q.Bytes, 0))+float64(max(q.ExtraTokens, 0)), maxPrompt)
	for i := range r.candidates {
		c := &r.candidates[i]
		c.prompt, c.rate = prompt, c.up.rate(now, rates)
		r.weighOne(now, c, block, unknown)
	}
}

// weighOne computes a candidate's terms from its prompt and rate.
func (r *Router) weighOne(now time.Time, c *candidate, block float64, unknown others) {
	u := c.up
	if len(u.queue) > 0 {
		u.drain(now, c.rate, r.flights)
		u.watch(now, c.rate)
	}
	last, probe := u.suspect(now)
	c.last, c.probe = last, probe && !last
	if u.slot >= 0 {
		c.blocks = r.held[u.slot]
	}
	// The engine computes at least the last block anew.
	c.matched = max(min(float64(c.blocks)*block, c.prompt-block), 0)
	missed := max(c.prompt-c.matched, block)
	c.work = requestWork + missed + attention*missed*(c.matched+missed/2)
	// Only tokens are discounted: what a request costs beyond them it costs
	// anywhere, and an idle holder stays the best choice.
	c.worth = requestWork + (c.work-requestWork)*r.wanted(int(c.blocks), missed, block)
	if !c.known {
		c.others = unknown
	}
	c.ahead = r.ahead(now, u, c.rate, c.others)
	c.memory = r.memoryWait(u, c.prompt, c.known)
	c.stalls = stall * (float64(u.decoding) + c.others.running)
	c.cost = (c.ahead+c.worth*(1+c.stalls))/c.rate + c.memory
	c.first = (c.ahead+c.work)/c.rate + c.memory
}

// ahead is the work before a request sent now, prefill tokens.
func (r *Router) ahead(now time.Time, u *upstream, rate float64, brought others) float64 {
	return max(u.queued-u.progress(now, rate, r.flights), 0) + brought.waiting*r.answers.work
}

// memoryWait is the time until an upstream has room for the KV blocks of one
// more request, seconds: requests leave it at the rate of its contents over
// their residence. known says whether its page counts.
func (r *Router) memoryWait(u *upstream, prompt float64, known bool) float64 {
	if !u.load.CapacityTokens.Known || u.load.CapacityTokens.Value <= 0 {
		return 0
	}
	capacity := u.load.CapacityTokens.Value
	used := u.room
	if known && u.load.KVUsage.Known {
		used = max(used, u.load.KVUsage.Value*capacity)
	}
	over := used + u.roomAhead + prompt + r.answers.tokens - capacity
	// What waits comes in before the last of it finds no room.
	active := min(used+u.roomAhead, capacity)
	if over <= 0 || active <= 0 {
		return 0
	}
	return r.answers.residence * over / active
}

// discount computes what the blocks of a chain are worth to upstreams that
// miss them, as sums from each block to the last that can be popular.
//
// Where several prompts in a row share a block that few upstreams hold, those
// few become the bottleneck; a copy elsewhere serves more than this request.
// The block counts H/(H + α·max(0, f·N - 1)) of its tokens, held by H of N
// upstreams and carried by share f of recent requests. The 1 leaves blocks
// alone that one upstream can carry, such as a session's own.
func (r *Router) discount(q *Request) {
	n := min(len(q.Chain), popularBlocks)
	if cap(r.weights) < n+1 {
		r.weights = make([]float64, 0, popularBlocks+1)
	}
	r.weights = r.weights[:n+1]
	clear(r.weights)
	// Holders of block i are those that hold more than i leading blocks.
	for i := range r.candidates {
		if u := r.candidates[i].up; u.slot >= 0 && r.held[u.slot] > 0 {
			r.weights[min(int(r.held[u.slot]), n)]++
		}
	}
	all := float64(len(r.candidates))
	holders, sum := 0.0, 0.0
	for i := n; i > 0; i-- {
		holders += r.weights[i] // of block i-1: those that hold at least i
		r.weights[i] = sum
		weight := 1.0
		if holders > 0 {
			if excess := r.popular.share(q.Chain[i-1])*all - 1; excess > 0 {
				weight = holders / (holders + replication*excess)
			}
		}
		sum += weight
	}
	r.weights[0] = sum
}

// wanted is the part of the missed tokens that counts, for an upstream that
// holds the given leading blocks.
func (r *Router) wanted(held int, missed, block float64) float64 {
	n := len(r.weights) - 1
	if held >= n {
		return 1
	}
	saved := (float64(n-held) - r.weights[held]) * block
	return max(missed-saved, 0) / missed
}

// blockTokens is the length of a block, tokens.
func (r *Router) blockTokens(model uint64) float64 { return r.blockBytes * r.tokens.of(model) }
