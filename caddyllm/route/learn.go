package route

import "time"

// speed is a learned prefill rate: work done over the time that it took, older
// samples counting less.
type speed struct {
	work, took float64 // prefill tokens, seconds
	samples    int
}

// priorSpeed is believed before the first tokens come: 10,000 tokens a second,
// between a large model on four older GPUs and a small one on a newer (5,000 to
// 50,000). It weighs as much as 5,000 tokens seen by all upstreams together:
// were it each one's, 64 of them would believe it for thousands of requests.
var priorSpeed = speed{work: 5000, took: 0.5}

const (
	// speedMemory is what a sample's weight falls to with each later one.
	speedMemory = 0.98
	// ownSpeedAfter is the number of samples before an upstream is thought to
	// differ from the others, as many as are remembered: a newcomer without a
	// queue looks faster than it is. ownSpeedBand is by what factor it must
	// differ: machines of one kind shall tie.
	ownSpeedAfter = 50
	ownSpeedBand  = 1.5
	// ownSpeedFor is for how long without a first token an upstream is still
	// thought to differ. One that seems slow may get no work that would show
	// otherwise. From then on a few samples decide anew.
	ownSpeedFor  = 5 * time.Minute
	speedRetrial = 4
	speedDoubt   = 0.05
	speedMin     = 50
	speedMax     = 1e7
)

func (s *speed) add(work, took float64) {
	s.work = s.work*speedMemory + work
	s.took = s.took*speedMemory + took
	s.samples++
}

func (s *speed) rate() float64 {
	if s.took <= 0 {
		s = &priorSpeed
	}
	return min(max(s.work/s.took, speedMin), speedMax)
}

// learnRate takes a first token as a sample: the request's work was done since
// its step began, or since the first token before it, and with it that of answers
// that aren't streamed. Of several in one step only the first pays for the step.
func (r *Router) learnRate(now time.Duration, f *flight, began time.Duration, mates int) {
	u := f.up
	if now-u.lastToken > ownSpeedFor && u.speed.samples > 0 {
		u.speed.work *= speedDoubt
		u.speed.took *= speedDoubt
		u.speed.samples = min(u.speed.samples, ownSpeedAfter-speedRetrial)
	}
	began = max(f.sent, u.lastToken, began)
	// How long it was stuck doesn't tell how fast it is.
	if took := (now - began).Seconds(); took >= 0 && took < 600 && began >= u.recovered {
		work := f.work + float64(min(u.unseen-f.unseen, u.unseen-u.atToken))
		again := took < requestWork/u.rate/2
		if again {
			work -= requestWork * (1 - r.apart.share())
		}
		r.apart.learn(u, again, max(mates-1, 0))
		u.speed.add(work, took)
	}
	u.lastToken, u.atToken = now, u.unseen
}

// speedKnown reports whether an upstream's own speed can be judged.
func (u *upstream) speedKnown(now time.Duration) bool {
	return u.speed.samples >= ownSpeedAfter && now-u.lastToken <= ownSpeedFor
}

// rates are those of all upstreams together, prefill tokens per second.
type rates struct {
	typical float64
	best    float64 // of one upstream; typical where it isn't clearly better
}

// ratesFor is for how long rates count.
const ratesFor = 50 * time.Millisecond

// judgeRates says how fast each upstream is thought to be. That is done anew
// when it is old: with hundreds of upstreams it costs as much as the rest of a
// decision.
func (r *Router) judgeRates(now time.Duration) {
	if age := now - r.ratesAt; age >= 0 && age < ratesFor {
		return
	}
	r.ratesAt, r.rates = now, r.lookAtRates(now)
	for _, u := range r.upstreams {
		if u != nil {
			u.setRate(u.judgedRate(now, r.rates))
		}
	}
}

// judgedRate is the upstream's own where it clearly differs from the typical
// one. Until its own is known an upstream counts as one of the best: else it
// might never get the requests that show how fast it is.
func (u *upstream) judgedRate(now time.Duration, all rates) float64 {
	if !u.speedKnown(now) {
		return all.best
	}
	own := u.speed.rate()
	if own < all.typical*ownSpeedBand && own > all.typical/ownSpeedBand {
		return all.typical
	}
	return own
}

// lookAtRates looks at the upstreams whose speed is known; if there are none,
// at all.
func (r *Router) lookAtRates(now time.Duration) rates {
	var known speed
	any, best := priorSpeed, 0.0
	for _, u := range r.upstreams {
		if u == nil {
			continue
		}
		any.work += u.speed.work
		any.took += u.speed.took
		if u.speedKnown(now) {
			known.work += u.speed.work
			known.took += u.speed.took
			best = max(best, u.speed.rate())
		}
	}
	if best == 0 {
		return rates{any.rate(), any.rate()}
	}
	all := rates{known.rate(), best}
	if best < all.typical*ownSpeedBand {
		all.best = all.typical
	}
	return all
}

// tokenRates are tokens per byte of prompt text, by model.
type tokenRates struct {
	models map[uint64]*tokenRate
	all    tokenRate
}

type tokenRate struct{ tokens, bytes float64 }

// A quarter token a byte is usual for English and for code. It weighs as much
// as 8,000 bytes seen.
var priorTokenRate = tokenRate{tokens: 2000, bytes: 8000}

const (
	maxModels = 1000
	// tokenRateMemory has some hundred answers remembered: enough of them that one
	// long document doesn't decide. With 50 or 200, TTFT in six workloads on 8
	// engines is the same within 0.2 % in the mean and 0.7 % in p99.
	tokenRateMemory = 0.99
	tokenRateMin    = 1.0 / 64 // tokens per byte
	tokenRateMax    = 2.0
)

func newTokenRates() tokenRates {
	return tokenRates{models: make(map[uint64]*tokenRate), all: priorTokenRate}
}

// of is the rate of a model, that of all models where there are too many.
func (t *tokenRates) of(model uint64) float64 {
	rate := t.models[model]
	if rate == nil {
		rate = &t.all
	}
	return min(max(rate.tokens/rate.bytes, tokenRateMin), tokenRateMax)
}

func (t *tokenRates) add(model uint64, tokens, bytes float64) {
	rate := t.models[model]
	if rate == nil && len(t.models) < maxModels {
		start := priorTokenRate
		rate = &start
		t.models[model] = rate
	}
	// What no tokenizer does can't be true, and must not be remembered.
	tokens = min(max(tokens, bytes*tokenRateMin), bytes*tokenRateMax)
	for _, rate := range []*tokenRate{rate, &t.all} {
		if rate != nil {
			rate.tokens = rate.tokens*tokenRateMemory + tokens
			rate.bytes = rate.bytes*tokenRateMemory + bytes
		}
	}
}

// answers are running means over completed requests.
type answers struct {
	tokens    float64 // generated
	residence float64 // seconds from sending to the end
	work      float64 // S of a request, for requests of others
}

const (
	// answersMemory has some fifty answers remembered. With 25 or 100, TTFT in six
	// workloads on 8 engines is the same within 0.1 % in the mean and 0.3 % in p99.
	answersMemory = 0.98
	maxResidence  = 3600 // seconds
)

// The priors are a chat turn's: some 200 tokens in some five seconds.
func newAnswers() answers {
	return answers{tokens: 200, residence: 5, work: requestWork + 1000}
}

func (m *answers) mean(into *float64, v float64) {
	*into = *into*answersMemory + v*(1-answersMemory)
}

// audit compares predicted with actual cached tokens over some requests.
type audit struct {
	requests          int
	over, under, seen float64 // tokens
}

// How the believed capacity of a prefix cache follows what answers tell.
const (
	auditRequests = 100
	auditGain     = 1.0
	// factorMin and factorMax bound what a row of answers that say the wrong thing
	// can do. Where pages tell four times the truth, 2/3 for factorMin is 1.16 times
	// the mean TTFT, and 1/6 is 0.98 times it (tenants on 4 engines of 80,000
	// tokens); chat is the same with each. Where pages tell a quarter, 1.5 and 6 for
	// factorMax change nothing, since the gauge tells first. What no page tells is
	// 190,000 tokens on a GPU of 48 GB, to 1,400,000 on eight of 80 GB: 0.4 to 3.2
	// times defaultCapacity.
	factorMin = 1.0 / 3
	factorMax = 3.0
	// defaultCapacity is believed where no page tells it, tokens: an 8B model
	// on a GPU of 80 GB. Believing too much costs less than too little.
	defaultCapacity = 440_000
)

// learnAnswer takes in a completed request.
func (r *Router) learnAnswer(now time.Duration, f *flight, usage *Usage) {
	r.answers.mean(&r.answers.residence, min(max((now-f.sent).Seconds(), 0), maxResidence))
	r.answers.mean(&r.answers.work, f.work)
	r.peers.each.add(f.work)
	if usage == nil || usage.PromptTokens <= 0 || usage.PromptTokens > maxPrompt {
		return
	}
	r.answers.mean(&r.answers.tokens, float64(min(max(usage.CompletionTokens, 0), maxPrompt)))
	if f.text > 0 {
		r.tokens.add(f.model, float64(usage.PromptTokens), float64(f.text))
	}
	u := f.up
	cached, known := u.cachedOf(f, usage)
	usage.CachedTokens, usage.CachedKnown = int(cached), known
	// With several sequences the engine may count what they share among
	// themselves: vLLM tells the last one's. Of one that wasn't looked for, or whose
	// beginning only the engine knows, nothing was predicted.
	if !known || f.sequences > 1 || f.unread || len(f.chain) == 0 {
		return
	}
	r.peers.learnGuess(f, cached, r.blockTokens(f.model))
	r.audit(u, f.matched, cached, r.blockTokens(f.model))
}

// silences is how many answers in a row that should have told of a hit, and
// told nothing, are taken for misses. Then the engine no longer tells, as after
// a restart with another option.
const silences = 20

// cachedOf is how many tokens of the prompt were cached, if that is known. vLLM
// to 0.19 at least tells nothing where nothing was cached: silence of an engine
// that told before, in the same form, is a zero.
func (u *upstream) cachedOf(f *flight, usage *Usage) (cached float64, known bool) {
	told := &u.told[min(usage.Form, forms-1)]
	if usage.CachedKnown {
		*told = silences
		return float64(min(max(usage.CachedTokens, 0), usage.PromptTokens)), true
	}
	if *told == 0 {
		return 0, false
	}
	if f.matched > 0 {
		*told--
	}
	return 0, true
}

// audit corrects the believed capacity: predicted hits that missed were
// evicted, and hits that were not predicted had been forgotten here too early.
// The latter only says something where this model was full.
func (r *Router) audit(u *upstream, matched, cached, block float64) {
	if u.slot < 0 {
		return
	}
	a := &u.audit
	a.requests++
	a.seen += max(matched, cached)
	a.over += max(matched-cached-block, 0)
	if r.index.Held(u.slot)*20 >= r.capacityBlocks(u)*19 {
		a.under += max(cached-matched-block, 0)
	}
	if a.requests < auditRequests {
		return
	}
	if a.seen > 0 {
		u.factor = min(max(u.factor*(1+auditGain*(a.under-a.over)/a.seen), factorMin), factorMax)
		r.index.SetCap(u.slot, r.capacityBlocks(u))
	}
	u.audit = audit{}
}

// capacityBlocks is how many blocks an upstream's prefix cache is believed to
// hold.
func (r *Router) capacityBlocks(u *upstream) int {
	if c := u.load.PrefixCache; c.Known && c.Value == 0 {
		return 0
	}
	tokens := float64(defaultCapacity)
	if u.capacity > 0 {
		tokens = u.capacity
	}
	rate := min(max(r.tokens.all.tokens/r.tokens.all.bytes, tokenRateMin), tokenRateMax)
	return int(min(tokens*u.factor/(r.blockBytes*rate), 1<<30))
}
