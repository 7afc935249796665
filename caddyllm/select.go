package caddyllm

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// Why a request went to the fallback policy. The label values of
// caddy_llm_prefix_fallbacks_total, and what follows "fallback:" in a reason.
const (
	whyMethod      = "method"       // not a POST
	whyPath        = "path"         // no path of an engine that takes prompts
	whyEncoding    = "encoding"     // a coded body, which isn't looked into
	whyIncremental = "incremental"  // the client forbids buffering
	whyUpgrade     = "upgrade"      // the connection becomes something else
	whyNoBody      = "no_body"      // a POST without one
	whyBodyError   = "body_error"   // the body could not be read
	whyBroken      = "broken_json"  // the body isn't JSON as engines accept it
	whyNoPrompt    = "no_prompt"    // JSON without a prompt
	whyMaxBody     = "max_body"     // no prompt within the first max_body bytes
	whyPanic       = "panic"        // a fault of ours
	whyNoSelection = "no_selection" // the decision had nothing to say
)

// flight is one request on its way through the proxy: what is known of its
// body, where it was sent, and the attempt under way. It lives in the request's
// context, where retries find it again. It belongs to the request's goroutine,
// but for what mu guards: the request may end while a retry is chosen.
type flight struct {
	policy *LLMPrefix
	ctx    context.Context // the request's, with the flight in it
	kind   prompt.Kind
	why    string // a fallback reason, empty if the prompt decides
	body   *body
	tried  []string // upstreams of earlier attempts
	record record   // what log and placeholders tell

	mu      sync.Mutex
	attempt *attempt
	landed  bool
}

// choice is a decision or, where prompt is false, that of the fallback policy.
type choice struct {
	route.Choice
	reason string
	prompt bool
	stream bool
}

// scanners are reused: their scratch space makes scanning free of allocations.
var scanners = sync.Pool{New: func() any { return new(prompt.Scanner) }}

// flightKey is distinct for each policy: two proxies may stand in one request,
// as with forward_auth.
type flightKey struct{ policy *LLMPrefix }

// Select returns the available upstream whose first token will probably come
// soonest for this request, or nil if none is available. Caddy calls it once
// for each attempt, concurrently for different requests.
func (p *LLMPrefix) Select(pool reverseproxy.UpstreamPool, r *http.Request, w http.ResponseWriter) *reverseproxy.Upstream {
	f, ok := r.Context().Value(flightKey{p}).(*flight)
	if !ok {
		f = p.takeOff(r)
	}
	return f.next(pool, r, w)
}

// takeOff looks at a request for the first time.
func (p *LLMPrefix) takeOff(r *http.Request) *flight {
	f := &flight{policy: p}
	f.kind, f.why = classify(r)
	ctx := context.WithValue(r.Context(), flightKey{p}, f)
	if f.why == "" {
		f.body = readBody(r, p.settings.maxBody)
		if f.body == nil {
			f.why = whyNoBody
		} else if f.body.err != nil {
			f.why = whyBodyError
		}
	}
	if f.body != nil && f.body.whole {
		// Reading the body made net/http ask the client for it. If the header
		// went on, the engine's "100 Continue" would be the client's second.
		r.Header.Del("Expect")
	}
	if f.body != nil && f.body.clientGone() {
		// The request must not reach an upstream; a canceled context makes the
		// proxy log 499 and count no failure.
		gone, cancel := context.WithCancel(ctx)
		cancel()
		ctx = gone
	}
	f.ctx = ctx
	*r = *r.WithContext(ctx)
	// The request's context ends when the handler returns or panics or the
	// client leaves: whatever was missed, this releases the reservation.
	context.AfterFunc(ctx, f.land)
	return f
}

// classify tells what kind of prompt a request carries, or why none.
func classify(r *http.Request) (prompt.Kind, string) {
	kind := prompt.KindOf(r.URL.Path)
	switch {
	case r.Method != http.MethodPost:
		return kind, whyMethod
	case r.Header.Get("Upgrade") != "":
		return kind, whyUpgrade
	case kind == prompt.None:
		return kind, whyPath
	case coded(r.Header):
		return kind, whyEncoding
	case caddyhttp.IsIncremental(r.Header):
		return kind, whyIncremental
	}
	return kind, ""
}

func coded(h http.Header) bool {
	for _, v := range h["Content-Encoding"] {
		if v != "" && !strings.EqualFold(v, "identity") {
			return true
		}
	}
	return false
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
	choice, upstream := f.choose(pool, r, w)
	if upstream == nil {
		return nil
	}
	a := newAttempt(f, upstream.Dial, choice)
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

// current is the attempt under way, nil before the first.
func (f *flight) current() *attempt {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.attempt
}

// begin makes a the attempt under way. If the request has ended meanwhile,
// nobody else would release it.
func (f *flight) begin(a *attempt) {
	f.mu.Lock()
	f.attempt = a
	landed := f.landed
	f.mu.Unlock()
	if landed {
		a.abandon()
	}
}

// land releases what the request still holds.
func (f *flight) land() {
	f.mu.Lock()
	f.landed = true
	a := f.attempt
	f.mu.Unlock()
	if a != nil {
		a.abandon()
	}
}

// choose asks the decision, and the fallback policy where there is no prompt
// to decide by.
func (f *flight) choose(pool reverseproxy.UpstreamPool, r *http.Request, w http.ResponseWriter) (choice, *reverseproxy.Upstream) {
	p := f.policy
	why := f.why
	if why == "" {
		var c choice
		var u *reverseproxy.Upstream
		if c, u, why = f.pick(pool, r); why == "" {
			return c, u
		}
		f.why = why
	}
	// Unlike the decision, the fallback policy doesn't know what was tried.
	u := p.fallback.Select(untried(pool, f.tried), r, w)
	if u != nil {
		countFallback(why)
	}
	return choice{reason: "fallback:" + why}, u
}

// pick asks the decision. A panic in it is a fault of ours and must not cost
// the client an answer that plain Caddy would have given.
func (f *flight) pick(pool reverseproxy.UpstreamPool, r *http.Request) (c choice, u *reverseproxy.Upstream, why string) {
	defer func() {
		if recover() != nil {
			f.policy.logPanic()
			c, u, why = choice{}, nil, whyPanic
		}
	}()
	began := time.Now()
	targets, byIndex := available(pool, f.tried)
	if len(targets) == 0 {
		return choice{}, nil, ""
	}
	s := scanners.Get().(*prompt.Scanner)
	scanned, status := s.Scan(f.kind, f.body.kept, f.body.whole, f.policy.settings.block)
	if why := fallbackReason(status, f.body.whole); why != "" {
		scanners.Put(s)
		return choice{}, nil, why
	}
	req := routeRequest(f.kind, &scanned, f.body, r)
	picked, ok := f.policy.shared.pick(time.Now(), &req, targets)
	scanners.Put(s) // not after a panic: its state may be torn
	if !ok {
		return choice{}, nil, whyNoSelection
	}
	observeDecision(targets[picked.Index].ID, picked.Reason, time.Since(began))
	return choice{Choice: picked, reason: string(picked.Reason), prompt: true, stream: req.Stream}, byIndex[picked.Index], ""
}

// logPanic tells where a fault of ours happened. The value of a panic may hold
// what the client sent, so it is not logged; the stack has no data in it.
func (p *LLMPrefix) logPanic() {
	p.logger.Error("panic while deciding; the request goes to the fallback policy", zap.StackSkip("stack", 2))
}

func fallbackReason(s prompt.Status, whole bool) string {
	switch {
	case s == prompt.OK:
		return ""
	case !whole:
		return whyMaxBody
	case s == prompt.NoPrompt:
		return whyNoPrompt
	default:
		return whyBroken
	}
}

func routeRequest(kind prompt.Kind, s *prompt.Prompt, b *body, r *http.Request) route.Request {
	req := route.Request{
		Chain:       s.Chain,
		Bytes:       s.Bytes,
		ExtraTokens: s.ExtraTokens,
		Model:       s.Model,
		MaxTokens:   s.MaxTokens,
		Sequences:   s.N,
		Stream:      s.Stream,
	}
	if !kind.Generates() {
		// It is work, but leaves nothing in the cache of KV blocks.
		req.Chain = nil
	}
	if !b.whole && r.ContentLength > int64(len(b.kept)) {
		req.Bytes += int(r.ContentLength) - len(b.kept)
	}
	return req
}
