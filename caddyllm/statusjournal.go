package caddyllm

import (
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/scrape"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// Bounds of what is remembered for those who look.
const (
	// keptDecisions are the last decisions of a state that are kept, of 200
	// bytes each.
	keptDecisions = 256
	// stepSpan and keptSteps make the window that counts are summed over, and
	// that sparklines show: five minutes in steps of five seconds.
	stepSpan  = 5 * time.Second
	keptSteps = 60
	// maxLedgers bounds the upstreams that have a ledger, of 6 KB each. Further
	// ones share one that is not shown.
	maxLedgers = maxLabels
	// ledgerIdle is how long nothing comes of an upstream before its ledger may
	// make room for another's.
	ledgerIdle = stepSpan * keptSteps
)

// journal remembers the last decisions, and what each upstream got of them in
// the last minutes, so that an operator can ask why. It holds addresses, words
// of ours, hashes and numbers, never a byte of a prompt. It is safe for
// concurrent use, and noting allocates nothing once an upstream is known.
type journal struct {
	mu      sync.Mutex // guards all below; held for a few assignments
	ring    [keptDecisions]decision
	noted   uint64 // decisions so far; the last one's place is noted-1
	ledgers map[string]*ledger
	rest    *ledger // of all upstreams beyond maxLedgers
	swept   time.Time
}

// decision is one choice, and what came of it.
type decision struct {
	number    uint64 // counted from 1
	at        time.Time
	upstream  string
	reason    string
	kind      prompt.Kind
	attempt   int
	blocks    int    // full blocks of the prompt
	first     uint64 // hash of the first block, 0 if there is none: prompts that begin alike share it
	last      uint64 // hash of the prompt to its last full block
	prompt    int    // tokens, estimate
	matched   int    // tokens, estimate
	cached    int    // tokens, -1 until an answer tells
	predicted time.Duration
	actual    time.Duration // to the first token of a streamed answer, 0 until known
	took      time.Duration // to the end, 0 until known
	outcome   outcome
}

// outcome is how an attempt ended, as far as it has.
type outcome uint8

const (
	underWay outcome = iota
	completed
	cancelled
	failed
	rejected
)

var outcomes = [...]string{"under_way", "completed", "cancelled", "failed", "rejected"}

func outcomeOf(end route.End) outcome {
	switch end {
	case route.Completed:
		return completed
	case route.Failed:
		return failed
	case route.Rejected:
		return rejected
	default:
		return cancelled
	}
}

// reasons are the words that are counted, by place; the last stands for all
// that were left to the fallback policy.
var reasons = [...]route.Reason{
	route.ReasonPrefix, route.ReasonLoad, route.ReasonCold, route.ReasonSession, route.ReasonRetry, route.ReasonProbe, "fallback",
}

func reasonPlace(reason string) int {
	for i, r := range reasons {
		if string(r) == reason {
			return i
		}
	}
	return len(reasons) - 1
}

// entry names a decision's place in the journal, for what comes of it. The
// zero entry names none.
type entry struct {
	number uint64 // counted from 1
	ledger *ledger
}

// decided notes an attempt's choice.
func (j *journal) decided(now time.Time, kind prompt.Kind, upstream string, attempt int, c *choice) entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.ledger(now, upstream)
	s := l.step(now)
	s.reasons[reasonPlace(c.reason)]++
	s.prompt += float32(c.PromptTokens)
	s.matched += float32(c.MatchedTokens)
	if kind == prompt.None {
		return entry{ledger: l} // lists of models and health checks would crowd out the prompts
	}
	d := &j.ring[j.noted%keptDecisions]
	j.noted++
	*d = decision{
		number: j.noted, at: now, upstream: upstream, reason: c.reason, kind: kind, attempt: attempt,
		blocks: c.blocks, first: c.first, last: c.last,
		prompt: c.PromptTokens, matched: c.MatchedTokens, cached: -1, predicted: c.FirstToken,
	}
	return entry{number: j.noted, ledger: l}
}

// at is an entry's decision, nil if later ones took its place.
func (j *journal) at(e entry) *decision {
	if e.number == 0 || j.noted-e.number >= keptDecisions {
		return nil
	}
	return &j.ring[(e.number-1)%keptDecisions]
}

// began notes the first token of a streamed answer.
func (j *journal) began(now time.Time, e entry, predicted, actual time.Duration) {
	if e.ledger == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s := e.ledger.step(now)
	s.firsts++
	s.predicted += float32(predicted.Seconds())
	s.actual += float32(actual.Seconds())
	if d := j.at(e); d != nil {
		d.actual = actual
	}
}

// ended notes how an attempt ended. usage is nil where the answer told none.
func (j *journal) ended(now time.Time, e entry, end route.End, c *choice, usage *route.Usage) {
	if e.ledger == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s := e.ledger.step(now)
	if end == route.Failed {
		s.lost++
	}
	d := j.at(e)
	if d != nil {
		d.outcome, d.took = outcomeOf(end), now.Sub(d.at)
	}
	if usage == nil || !usage.CachedKnown || c.several {
		return
	}
	s.told += float32(usage.PromptTokens)
	s.toldMatched += float32(c.MatchedTokens)
	s.toldCached += float32(usage.CachedTokens)
	if d != nil {
		d.cached = usage.CachedTokens
	}
}

// scraped notes what a scrape came to.
func (j *journal) scraped(now time.Time, r *scrape.Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.ledger(now, r.Upstream)
	l.reason, l.status = r.Reason, r.Status
	if r.Page == nil {
		return
	}
	l.engine = r.Page.Engine
	if s, load := l.step(now), &r.Page.Load; !load.Empty() {
		s.waiting, s.running = float32(load.Waiting.Value), float32(load.Running.Value)
	}
}

// ledger finds or begins an upstream's. Its caller holds j.mu.
func (j *journal) ledger(now time.Time, upstream string) *ledger {
	if l := j.ledgers[upstream]; l != nil {
		return l
	}
	if len(j.ledgers) >= maxLedgers && now.Sub(j.swept) >= ledgerIdle {
		j.swept = now
		oldest := stepNumber(now.Add(-ledgerIdle))
		for name, l := range j.ledgers {
			if l.last < oldest {
				delete(j.ledgers, name)
			}
		}
	}
	l := new(ledger)
	switch {
	case len(j.ledgers) < maxLedgers:
		if j.ledgers == nil {
			j.ledgers = make(map[string]*ledger)
		}
		j.ledgers[upstream] = l
	case j.rest == nil:
		j.rest = l
	default:
		l = j.rest
	}
	return l
}

// decisions copies the last ones, at most so many, newest first.
func (j *journal) decisions(most int) []decision {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := min(j.noted, keptDecisions, uint64(most))
	all := make([]decision, 0, n)
	for i := range n {
		all = append(all, j.ring[(j.noted-1-i)%keptDecisions])
	}
	return all
}

// look calls f with an upstream's ledger, nil if it has none.
func (j *journal) look(upstream string, f func(*ledger)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(j.ledgers[upstream])
}
