package rivals

import (
	"strconv"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// llmPrefix is the decision that runs in Caddy.
type llmPrefix struct {
	router  *route.Router
	block   int
	ids     []string
	targets []route.Target
	tickets map[uint64]ticket
}

// ticket is a request on its way.
type ticket struct {
	route.Ticket
	pulse *route.Pulse
	last  time.Duration // of its tokens
}

// epoch is the wall clock's time at the beginning of a replay.
var epoch = time.Unix(1_700_000_000, 0)

func newLLMPrefix(env Env, s settings) Policy {
	p := &llmPrefix{block: int(s["block"]), tickets: make(map[uint64]ticket)}
	p.router = route.New(route.Options{BlockBytes: p.block, Seed: env.Seed})
	for i := range env.Upstreams {
		p.ids = append(p.ids, "engine"+strconv.Itoa(i)+":8000")
	}
	return p
}

func (p *llmPrefix) Pick(now time.Duration, q *Request, targets []Target) int {
	p.targets = p.targets[:0]
	for _, t := range targets {
		p.targets = append(p.targets, route.Target{ID: p.ids[t.Upstream], Tried: t.Tried})
	}
	c, _ := p.router.Pick(epoch.Add(now), &route.Request{Chain: q.Chain(p.block), Bytes: q.Bytes, Stream: true}, p.targets)
	p.settle()
	p.tickets[q.ID] = ticket{Ticket: c.Ticket, pulse: c.Pulse}
	return c.Index
}

// settle takes no virtual time, as it takes hardly any in Caddy.
func (p *llmPrefix) settle() {
	for p.router.Unsettled() {
		p.router.Settle()
	}
}

func (p *llmPrefix) FirstToken(now time.Duration, id uint64) {
	p.router.FirstByte(epoch.Add(now), p.tickets[id].Ticket)
	p.settle()
	p.Token(now, id)
}

func (p *llmPrefix) Token(now time.Duration, id uint64) {
	t, ok := p.tickets[id]
	if !ok {
		return
	}
	var gap time.Duration
	if t.last > 0 {
		gap = now - t.last
	}
	t.pulse.Beat(epoch.Add(now), gap)
	t.last = now
	p.tickets[id] = t
}

func (p *llmPrefix) End(now time.Duration, id uint64, o Outcome, usage *Usage) {
	end, told := route.Completed, (*route.Usage)(nil)
	if o == Failed {
		end = route.Failed
	}
	if usage != nil {
		told = &route.Usage{
			PromptTokens: usage.PromptTokens, CompletionTokens: usage.OutputTokens,
			CachedTokens: usage.CachedTokens, CachedKnown: true,
		}
	}
	p.router.Done(epoch.Add(now), p.tickets[id].Ticket, end, told)
	p.settle()
	delete(p.tickets, id)
}

// ScrapeEvery is less while others are about. A scrape that is planned isn't put
// forward, as in Caddy.
func (p *llmPrefix) ScrapeEvery(now, every time.Duration) time.Duration {
	return p.router.ScrapeEvery(epoch.Add(now), every)
}

func (p *llmPrefix) Scraped(now time.Duration, upstream int, page *Page) {
	at, id := epoch.Add(now), p.ids[upstream]
	if page == nil {
		p.router.ScrapeFailed(at, id)
		return
	}
	p.router.Scraped(at, id, &route.Load{
		Waiting:        route.Known(float64(page.Waiting)),
		Running:        route.Known(float64(page.Running)),
		KVUsage:        route.Known(page.KVUsage),
		CapacityTokens: route.Known(page.CapacityTokens),
		BlockTokens:    route.Known(page.BlockTokens),
		PrefixHits:     route.Known(page.PrefixHits),
		PrefixQueries:  route.Known(page.PrefixQueries),
		PromptTokens:   route.Known(page.PromptTokens),
		OutputTokens:   route.Known(page.OutputTokens),
		Preemptions:    route.Known(page.Preemptions),
		StartTime:      route.Known(float64(epoch.Unix()) + page.StartTime),
	})
}
