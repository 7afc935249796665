package main

import (
	"container/heap"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// The soak in virtual time: conversations that grow and end, over upstreams of
// which one is replaced by another of a new address each few minutes, for half
// a day and more. Some requests fail, some are left, some are refused.
const (
	upstreams     = 16
	conversations = 2000
	perSecond     = 40
	replacedEvery = 5 * time.Minute
	scrapedEvery  = time.Second
	blocksFirst   = 8       // of a conversation's first prompt
	blocksTurn    = 4       // that a turn adds
	blocksMax     = 64      // then the conversation ends
	indexBytes    = 8 << 20 // full within the first tenth
)

// event is something that happens to a request that is under way.
type event struct {
	at     time.Time
	ticket route.Ticket
	first  bool // its first token; else its end
	end    route.End
	usage  route.Usage
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop implements heap.Interface.
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// pool is the upstreams of the moment, and what comes of requests to them.
type pool struct {
	rng      *rand.Rand
	router   *route.Router
	now      time.Time
	targets  []route.Target
	served   []float64 // tokens that each has computed, for its page
	named    int
	pending  events
	replaced time.Time
	scraped  time.Time
}

func (p *pool) join(i int) {
	p.named++
	p.targets[i].ID = fmt.Sprintf("10.%d.%d.%d:8000", p.named>>16&255, p.named>>8&255, p.named&255)
	p.served[i] = 0
}

// pass lets time pass until a request is due.
func (p *pool) pass(until time.Time) {
	for len(p.pending) > 0 && !p.pending[0].at.After(until) {
		e := heap.Pop(&p.pending).(event)
		if e.first {
			p.router.FirstByte(e.at, e.ticket)
		} else {
			p.router.Done(e.at, e.ticket, e.end, &e.usage)
		}
	}
	p.now = until
	if until.Sub(p.scraped) >= scrapedEvery {
		p.scraped = until
		for i := range p.targets {
			p.router.Scraped(until, p.targets[i].ID, &route.Load{
				Waiting: route.Known(0), Running: route.Known(2), KVUsage: route.Known(0.3),
				CapacityTokens: route.Known(2_000_000), PromptTokens: route.Known(p.served[i]),
			})
		}
	}
	if until.Sub(p.replaced) >= replacedEvery {
		p.replaced = until
		p.join(p.rng.IntN(len(p.targets)))
	}
}

// send decides on a request, and plans what comes of it.
func (p *pool) send(q *route.Request) bool {
	c, ok := p.router.Pick(p.now, q, p.targets)
	if !ok {
		return false
	}
	p.served[c.Index] += float64(c.PromptTokens)
	first := p.now.Add(time.Duration(c.PromptTokens-c.MatchedTokens+1000) * 50 * time.Microsecond)
	e := event{at: first.Add(time.Duration(p.rng.ExpFloat64() * float64(2*time.Second))), ticket: c.Ticket, end: route.Completed}
	e.usage = route.Usage{PromptTokens: max(c.PromptTokens, 1), CompletionTokens: 100, CachedTokens: c.MatchedTokens, CachedKnown: true}
	switch n := p.rng.IntN(100); {
	case n < 2:
		p.router.Done(p.now, c.Ticket, route.Failed, nil)
		return true
	case n < 4:
		p.router.Done(p.now, c.Ticket, route.Rejected, nil)
		return true
	case n < 5:
		p.router.Refused(p.now, c.Ticket, time.Second)
		return true
	case n < 10:
		e.end = route.Cancelled
	}
	heap.Push(&p.pending, event{at: first, ticket: c.Ticket, first: true})
	heap.Push(&p.pending, e)
	return true
}

func virtual(ctx context.Context, o options) (outcome, error) {
	p := &pool{
		rng: rand.New(rand.NewPCG(o.seed, 1)), now: time.Unix(1_800_000_000, 0),
		router:  route.New(route.Options{MemoryBytes: indexBytes, Seed: o.seed}),
		targets: make([]route.Target, upstreams), served: make([]float64, upstreams),
	}
	p.replaced, p.scraped = p.now, p.now
	for i := range p.targets {
		p.join(i)
	}
	talks := make([][]uint64, conversations)
	models := make([]uint64, conversations)
	var out outcome
	blocks := 0
	for n := range o.virtual {
		p.pass(p.now.Add(time.Duration(p.rng.ExpFloat64() / perSecond * float64(time.Second))))
		i := p.rng.IntN(conversations)
		if len(talks[i]) == 0 || len(talks[i]) >= blocksMax {
			talks[i] = talks[i][:0]
			models[i] = p.rng.Uint64N(50)
			if p.rng.IntN(200) == 0 {
				models[i] = p.rng.Uint64() // anybody may name any
			}
			for range blocksFirst {
				talks[i] = append(talks[i], p.rng.Uint64())
			}
		} else {
			for range blocksTurn {
				talks[i] = append(talks[i], p.rng.Uint64())
			}
		}
		q := &route.Request{Chain: talks[i], Bytes: 256*len(talks[i]) + 100, Model: models[i], Stream: true, MaxTokens: 200}
		blocks += len(talks[i])
		if !p.send(q) {
			out.failed++
		}
		if (n+1)%(o.virtual/tenths) == 0 {
			if ctx.Err() != nil {
				return out, ctx.Err()
			}
			out.heap = append(out.heap, alive())
		}
	}
	p.pass(p.now.Add(time.Hour + time.Minute))
	known := p.router.Snapshot(p.now)
	for _, u := range known {
		out.inFlight += u.Prefill + u.Decode
	}
	out.more = []check{{fmt.Sprintf("virtual time: upstreams known an hour later, of %d in all", p.named), float64(len(known)), upstreams + 1}}
	runtime.KeepAlive(p)
	return out, nil
}

// alive is what is on this process's heap after a collection, MiB.
func alive() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}
