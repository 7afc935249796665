package route

import (
	"math"
	"slices"
	"time"
)

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
	// stall (θ) is how much each decoding request slows a prefill. By replays
	// of six workloads at 90 % of the knee, 0.02 to 0.035 are within 0.2 % of each
	// other in mean TTFT, and 0.05 is 1.4 % worse, and 3 % in p99.
	stall = 0.03
	// unavoidable is the part of θ that counts for work that must be done
	// wherever the request goes: it stalls somebody's answers in any case, and
	// counted whole it would herd long prompts to the upstream that decodes
	// least, which then never gets to decode more.
	unavoidable = 0.3
	// joinedDelay is how much of the wait of those that join the same step counts:
	// wherever they had gone, others would have joined them. By replays of seven
	// workloads at 90 % of the knee, it is 0.8 % better in mean TTFT than 1, and 2 %
	// in p99.
	joinedDelay = 0.5
	// replication (α) is how strongly demand beyond what one upstream can
	// carry makes a copy of a popular block worth its cost.
	replication = 8
)

// terms are what sending a request to a candidate would mean.
type terms struct {
	prompt  float64 // tokens
	matched float64 // tokens
	work    float64 // S, prefill tokens
	worth   float64 // S'
	ahead   float64 // W
	strain  float64 // what each prefilled token takes from those that decode, seconds
	coming  float64 // what each of its tokens takes from those that peers will send, seconds
	again   float64 // what peers will do again who don't find it there, seconds
	stalls  float64 // what it takes from all these, seconds
	delay   float64 // what it takes from those that join the same step, seconds
	memory  float64 // seconds
	step    float64 // what is left of the step in progress, seconds
	cost    float64 // seconds
	first   float64 // expected time to the first token, seconds
}

// outlook is what is the same for all candidates of a decision.
type outlook struct {
	prompt  float64 // tokens
	block   float64 // tokens
	unknown others  // what others bring where no page counts
	usual   burden  // of those that serve, where one refuses
	least   float64 // S' where it is least
	apart   float64 // how far first tokens come one by one
	own     own     // of the length last asked for
	blocks  int32   // that length; -1: none was asked for
	best    int     // the candidate of least cost
	most    int32   // leading blocks that a candidate holds
	popular float64 // tokens that the prompt begins with and one upstream can't carry; 0 without peers
	again   float64 // tokens that peers will look for at the prompt's owner; 0 without peers
	begun   bool    // one holds more of the prompt than what is popular; false without peers
	retry   bool    // one was tried before
	homes   bool    // one is of the request's session
	peers   bool    // other gateways send to the same upstreams
}

// own is what a request is to a candidate by what that holds of it. Most hold
// nothing of a prompt, or the same, so it is found once for all of them.
type own struct {
	matched float64 // tokens
	work    float64 // S
	worth   float64 // S'
}

// maxPrompt bounds what one request can make us believe of its length, tokens:
// more than any engine's context.
const maxPrompt = 1 << 24

// longPrompt is the length from which the engines' capacities are looked at,
// tokens. Shorter ones fit everywhere.
const longPrompt = 1 << 15

// bounded is a prompt's length as far as it can mean work, tokens. A length is
// a client's word, and most of a body may be yet to come: an engine refuses what
// doesn't fit into its cache.
func (r *Router) bounded(tokens float64) float64 {
	if tokens <= longPrompt {
		return tokens
	}
	largest := 0.0
	for i := range r.candidates {
		capacity := r.candidates[i].up.capacity
		if capacity <= 0 {
			capacity = maxPrompt
		}
		largest = max(largest, capacity)
	}
	return min(tokens, max(largest, longPrompt), maxPrompt)
}

// weigh finds what each of the targets met costs.
func (r *Router) weigh(now time.Duration, q *Request, targets []Target) outlook {
	r.judgeRates(now)
	r.match(q.sought())
	o := outlook{
		prompt: r.bounded(r.tokens.of(q.Model)*float64(max(q.Bytes, 0)) + float64(max(q.ExtraTokens, 0))),
		block:  r.blockTokens(q.Model),
		apart:  r.apart.share(),
		blocks: -1,
	}
	o.peers = r.peers.count() > 1
	if o.peers {
		r.popular.exactly()
	}
	r.findPopular(q, len(targets), o.peers)
	r.look(now, targets, &o)
	r.discount()
	if o.peers {
		r.foreknow(now, q, &o)
	}
	r.findUsual(now, &o)
	least := r.least(&o)
	lead := o.best
	best := &r.candidates[lead]
	r.value(now, best, &o, least)
	limit := best.cost * beaten
	unseen := r.own(&candidate{}, &o).worth // to those that hold nothing
	some := r.stirred
	if best.rank > sound || unseen/r.rates.best <= limit {
		// One of the unmoved may be as good.
		for i := len(r.every); i < len(targets); i++ {
			r.every = append(r.every, int32(i))
		}
		some = r.every[:len(targets)]
	}
	for _, i := range some {
		c := &r.candidates[i]
		if int(i) != lead {
			worth := unseen
			if c.blocks > 0 || c.shares || c.owned {
				worth = r.ownOf(c, &o).worth
			}
			if !c.home && (c.rank > best.rank || c.rank == best.rank && c.up.dearer(now, worth, limit)) {
				continue
			}
			r.value(now, c, &o, least)
			if c.rank < best.rank || c.rank == best.rank && c.cost < best.cost {
				best, o.best = c, int(i)
				limit = c.cost * beaten
			}
		}
		r.weighed = append(r.weighed, i)
	}
	o.least = least
	return o
}

// beaten is by what factor a candidate is dearer than the best that certainly
// isn't equal within the noise, whatever rounding does. No term is negative, and
// of what is strained at most the part that could be avoided is spared, of work that
// is no more: a candidate costs at least what dearer looks at, the time of what comes
// before the request, of its own work, and of what that takes from answers wherever
// it is done.
const beaten = 1 + tieBand + 1e-9

// value sets what a candidate costs.
func (r *Router) value(now time.Duration, c *candidate, o *outlook, least float64) {
	var t terms
	r.terms(now, c, o, &t)
	spared := (1 - unavoidable) * least * t.strain
	c.cost, c.first = t.cost-spared, t.first
	if c.home {
		c.kept = t.cost - t.delay - t.again - (t.worth-requestWork)*(1/c.up.rate+t.strain+t.coming) - spared
	}
}

// least is the least that the request is worth to a candidate. Of those that
// hold all popular blocks, to whom it is worth less the more they hold, only the
// one that holds most is asked; and all where peers may have left something, of
// which those know nothing that hold the same.
func (r *Router) least(o *outlook) float64 {
	least, n := math.Inf(1), len(r.holders)-1
	if o.peers {
		for i := range r.candidates {
			least = min(least, r.ownOf(&r.candidates[i], o).worth)
		}
		return least
	}
	for length, many := range r.holders {
		if many == 0 {
			continue
		}
		c := candidate{blocks: int32(length)}
		if length == n {
			c.blocks = o.most
		}
		least = min(least, r.own(&c, o).worth)
	}
	return least
}

// own says what the request is to a candidate alone.
func (r *Router) own(c *candidate, o *outlook) own {
	// The engine computes at least the last block anew.
	matched := max(min(float64(c.blocks)*o.block, o.prompt-o.block), 0)
	held := matched
	if o.peers {
		held = r.guessed(c, o, held)
	}
	missed := max(o.prompt-held, o.block)
	work := requestWork + missed + attention*missed*(held+missed/2)
	// Only tokens are discounted: what a request costs beyond them it costs
	// anywhere, and an idle holder stays the best choice.
	worth := requestWork + (work-requestWork)*r.wanted(int(c.blocks), missed, o.block)
	return own{matched, work, worth}
}

// ownOf is own, found once for all that hold the same.
func (r *Router) ownOf(c *candidate, o *outlook) *own {
	if c.blocks != o.blocks || c.shares || c.owned {
		o.own, o.blocks = r.own(c, o), c.blocks
		if c.shares || c.owned {
			o.blocks = -1
		}
	}
	return &o.own
}

// terms sets t to what sending the request to a candidate would mean.
func (r *Router) terms(now time.Duration, c *candidate, o *outlook, t *terms) {
	u := c.up
	own := r.ownOf(c, o)
	t.prompt, t.matched, t.work, t.worth = o.prompt, own.matched, own.work, own.worth
	others := r.broughtTo(c, o)
	if t.coming, t.again = 0, 0; o.peers {
		t.coming = u.company.coming
		if !c.owned {
			t.again = o.again * u.pace
		}
	}
	pace := u.pace
	joining := 0.0
	t.ahead, t.step = 0, 0
	if len(u.queue) > 0 || u.decoding > 0 {
		t.ahead, t.step, joining = u.turn(now, pace, o.apart, r.flights)
	}
	t.ahead += others.queued
	running := float64(u.decoding) + others.running
	if o.usual != (burden{}) && recently(now, u.refusedAt) {
		t.ahead, running = max(t.ahead, o.usual.queued), max(running, o.usual.running)
	}
	t.memory = r.memoryWait(u, o.prompt, c.known)
	t.strain = stall * running * pace
	t.stalls = t.strain*(t.worth-(1-unavoidable)*o.least) + t.again
	if t.coming > 0 {
		// Who meets theirs in the same instant waits for it, or it waits for us.
		t.stalls += t.coming * (t.worth + r.answers.work)
	}
	t.delay = 0
	if joining > 0 {
		// Their first tokens come with ours, so what we add to the step they wait
		// for: each as long as we.
		t.delay = joinedDelay * joining * max(min(t.worth-requestWork, stepBudget-t.ahead), 0) * pace
	}
	t.cost = (t.ahead+t.worth)*pace + t.stalls + t.delay + t.memory + t.step
	t.first = (t.ahead+t.work)*pace + t.memory + t.step
}

// memoryWait is the time until an upstream has room for the KV blocks of one
// more request, seconds: requests leave it at the rate of its contents over
// their residence. known says whether its page counts.
func (r *Router) memoryWait(u *upstream, prompt float64, known bool) float64 {
	if u.capacity <= 0 {
		return 0
	}
	used := u.room
	if known {
		used = max(used, u.used)
	}
	over := used + u.roomAhead + prompt + r.answers.tokens - u.capacity
	// What waits comes in before the last of it finds no room.
	active := min(used+u.roomAhead, u.capacity)
	if over <= 0 || active <= 0 {
		return 0
	}
	return min(r.answers.residence*over/active, maxResidence)
}

// findPopular finds the leading blocks of a chain that one upstream can't carry,
// and sets r.demands to the demand for each. Whoever carries a block carries those
// before it, so that none behind one that isn't popular is.
func (r *Router) findPopular(q *Request, upstreams int, peers bool) {
	chain := q.sought()
	chain = chain[:min(len(chain), popularBlocks)]
	demands := r.demands[:0]
	var some [16]tally
	// Blocks in a row mostly come in the same requests.
	last, demand := tally(0), r.popular.demand(0, float64(upstreams))
search:
	for r.popular.size > 0 && len(demands) < len(chain) {
		ahead := chain[len(demands):]
		n := r.popular.tallies(ahead, &some)
		for i, t := range some[:n] {
			if peers {
				t = r.popular.exact(ahead[i], t)
			}
			if t != last {
				last, demand = t, r.popular.demand(t, float64(upstreams))
			}
			if demand <= 0 {
				break search
			}
			demands = append(demands, demand)
		}
	}
	r.demands, r.alone = demands, float64(len(chain)-len(demands))
}

// discount computes what the popular blocks of a chain are worth to upstreams that
// miss them, as sums from each block to the last that can be popular.
//
// Where several prompts in a row share a block that few upstreams hold, those
// few become the bottleneck; a copy elsewhere serves more than this request.
// The block counts H/(H + α·max(0, f·N - 1)) of its tokens, held by H of N
// upstreams and carried by share f of recent requests. The 1 leaves blocks
// alone that one upstream can carry, such as a session's own. The share of the
// requests that wait counts instead of f if it is more.
func (r *Router) discount() {
	n := len(r.demands)
	r.weights = slices.Grow(r.weights[:0], n+1)[:n+1]
	sum := r.alone // each of those that aren't popular counts whole
	r.weights[n] = sum
	holders := float64(r.holders[n])
	weight, of, demand := 1.0, 0.0, 0.0
	demands, holding, weights := r.demands[:n], r.holders[:n], r.weights[:n]
	for i := len(demands) - 1; i >= 0; i-- {
		if holders > 0 && (holders != of || demands[i] != demand) {
			of, demand = holders, demands[i]
			weight = of / (of + replication*demand)
		}
		sum += weight
		weights[i] = sum
		holders += float64(holding[i])
	}
}

// wanted is the part of the missed tokens that counts, for an upstream that
// holds the given leading blocks.
func (r *Router) wanted(held int, missed, block float64) float64 {
	n := len(r.weights) - 1
	if held >= n {
		return 1
	}
	saved := (float64(n-held) + r.weights[n] - r.weights[held]) * block
	return max(missed-saved, 0) / missed
}

// blockTokens is the length of a block, tokens.
func (r *Router) blockTokens(model uint64) float64 { return r.blockBytes * r.tokens.of(model) }
