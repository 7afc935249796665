package caddyllm

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// choice is a decision or, where prompt is false, that of the fallback policy.
type choice struct {
	route.Choice
	reason string
	prompt bool
	stream bool
	// several sequences were asked for: what of them was cached says little.
	several bool
	// The prompt's full blocks, and hashes of the first and to the last of them.
	blocks      int
	first, last uint64
}

// desk is what one decision needs. Desks are reused: their scratch space makes
// scanning free of allocations.
type desk struct {
	scanner prompt.Scanner
	targets []route.Target
	ups     []*reverseproxy.Upstream // the targets', by place
}

var desks = sync.Pool{New: func() any { return new(desk) }}

// Select returns the available upstream whose first token will probably come
// soonest for this request, or nil if none is available. Caddy calls it once
// for each attempt, concurrently for different requests.
func (p *LLMPrefix) Select(pool reverseproxy.UpstreamPool, r *http.Request, w http.ResponseWriter) *reverseproxy.Upstream {
	f, ok := r.Context().Value(flightKey{p}).(*flight)
	if !ok {
		if !slices.ContainsFunc(pool, (*reverseproxy.Upstream).Available) {
			// The body stays unread: whoever serves the request instead may need it,
			// and nobody must wait for it to be told that there is no upstream.
			return nil
		}
		f = p.takeOff(r)
	}
	return f.next(pool, r, w)
}

// takeOff looks at a request for the first time.
func (p *LLMPrefix) takeOff(r *http.Request) *flight {
	f := &flight{Context: r.Context(), policy: p, why: whyPanic}
	f.classify(r)
	if f.why == "" {
		f.body = readBody(r, p.settings.maxBody)
		if f.body == nil {
			f.why = whyNoBody
		} else {
			f.body.goOn(r.Context())
			if f.body.err != nil {
				f.why = whyBodyError
			}
		}
	}
	if f.body != nil {
		f.trace.WroteRequest = f.body.wrote
		f.Context = httptrace.WithClientTrace(f.Context, &f.trace)
		f.arm()
	}
	if f.body != nil && f.body.whole {
		// Reading the body made net/http ask the client for it. If the header
		// went on, the engine's "100 Continue" would be the client's second.
		r.Header.Del("Expect")
	}
	if f.body != nil && f.body.clientGone() {
		// The request must not reach an upstream; a canceled context makes the
		// proxy log 499 and count no failure.
		gone, cancel := context.WithCancel(f.Context)
		cancel()
		f.Context = gone
	}
	*r = *r.WithContext(f)
	return f
}

// next makes one attempt's choice.
func (f *flight) next(pool reverseproxy.UpstreamPool, r *http.Request, w http.ResponseWriter) *reverseproxy.Upstream {
	p := f.policy
	if a := f.current(); a != nil {
		// Being asked again is how a policy learns that an attempt failed.
		a.finish(route.Failed, nil)
	}
	if f.body != nil && !f.body.open(r) {
		return nil // the proxy keeps the error of the attempt before
	}
	f.tried = nextRound(pool, f.tried)
	choice, upstream := f.choose(pool, r, w)
	if upstream == nil || p.upstreams.blind {
		f.leaveBody(r.Context())
	}
	if upstream == nil {
		return nil
	}
	a := newAttempt(f, upstream.Dial, choice)
	a.note()
	f.arm()
	f.begin(a)
	if !slices.Contains(f.tried, upstream.Dial) {
		f.tried = append(f.tried, upstream.Dial)
	}
	if p.upstreams.blind {
		a.listen(r)
	}
	p.upstreams.seen(pool)
	f.publish(a, r, w)
	return upstream
}

// choose asks the decision, and the fallback policy where there is no prompt
// to decide by.
func (f *flight) choose(pool reverseproxy.UpstreamPool, r *http.Request, w http.ResponseWriter) (choice, *reverseproxy.Upstream) {
	p := f.policy
	if f.why == "" {
		var c choice
		var u *reverseproxy.Upstream
		if c, u, f.why = f.pick(pool, r); f.why == "" {
			return c, u
		}
	}
	if u := f.issuer(pool, r); u != nil {
		return choice{reason: string(route.ReasonSession)}, u
	}
	// Unlike the decision, the fallback policy doesn't know what was tried.
	u := p.fallback.Select(untried(pool, f.tried), r, w)
	if u != nil {
		metrics.fellBack(f.why)
	}
	return choice{reason: "fallback:" + f.why}, u
}

// pick asks the decision. A panic in it is a fault of ours and must not cost
// the client an answer that plain Caddy would have given.
func (f *flight) pick(pool reverseproxy.UpstreamPool, r *http.Request) (c choice, u *reverseproxy.Upstream, why string) {
	defer func() {
		if recover() != nil {
			caught(f.policy.logger, inDecision)
			c, u, why = choice{}, nil, whyPanic
		}
	}()
	began := time.Now()
	d := desks.Get().(*desk)
	d.available(pool, f.tried)
	if len(d.targets) > 0 {
		c, u, why = f.decide(d, r, began)
	}
	desks.Put(d) // not after a panic: its state may be torn
	return c, u, why
}

// decide finds the prompt and asks where to send it.
func (f *flight) decide(d *desk, r *http.Request, began time.Time) (choice, *reverseproxy.Upstream, string) {
	shared := f.policy.shared
	req, previous, why := f.read(&d.scanner, r)
	if why != "" {
		return choice{}, nil, why
	}
	if f.policy.upstreams.blind {
		req.Stream = false // its header would pass for its first token
	}
	from, to := narrow(shared.responses.of(previous), d.targets)
	if home := shared.sessions.of(f.session); home != "" {
		for i := range d.targets {
			d.targets[i].Home = d.targets[i].ID == home
		}
	}
	picked, ok := shared.pick(time.Now(), &req, d.targets[from:to])
	if !ok {
		return choice{}, nil, whyNoSelection
	}
	if to-from < len(d.targets) {
		picked.Reason = route.ReasonSession
	}
	u := d.ups[from+picked.Index]
	shared.sessions.put(f.session, u.Dial)
	metrics.decided(u.Dial, picked.Reason, time.Since(began))
	c := choice{Choice: picked, reason: string(picked.Reason), prompt: true, stream: req.Stream, several: req.Sequences > 1}
	if n := len(req.Chain); n > 0 {
		c.blocks, c.first, c.last = n, req.Chain[0], req.Chain[n-1]
	}
	return c, u, ""
}
