package caddyllm

import (
	"context"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/cespare/xxhash/v2"
	"golang.org/x/net/http/httpguts"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
)

// flight is one request on its way through the proxy: what is known of its
// body, where it was sent, and the attempt under way. It is the request's
// context, so that retries find it again. It belongs to the request's
// goroutine, but for what mu guards: the request may end while a retry is
// chosen.
type flight struct {
	context.Context
	policy  *LLMPrefix
	kind    prompt.Kind
	why     string // a fallback reason, empty if the prompt decides
	coded   []string
	form    string // a form's boundary
	session uint64
	body    *body
	tried   []string // upstreams of earlier attempts
	record  record   // what log and placeholders tell
	disarm  func() bool
	trace   httptrace.ClientTrace // tells when the body was written

	mu      sync.Mutex
	attempt *attempt
	landed  bool
}

// Value is the flight itself for the key of its policy.
func (f *flight) Value(key any) any {
	if k, ok := key.(flightKey); ok && k.policy == f.policy {
		return f
	}
	return f.Context.Value(key)
}

// flightKey is distinct for each policy: two proxies may stand in one request,
// as with forward_auth.
type flightKey struct{ policy *LLMPrefix }

// arm makes the end of the request's context release what is still reserved.
// It ends when the handler returns or panics or the client leaves, so nothing
// is missed.
func (f *flight) arm() {
	if f.disarm == nil {
		f.disarm = context.AfterFunc(f, f.land)
	}
}

// done is called where an answer came whole: there is nothing left to release.
func (f *flight) done() {
	if f.disarm != nil {
		f.disarm()
		f.disarm = nil
	}
	if f.body != nil {
		f.body.land()
	}
}

// classify tells what kind of prompt a request carries, or why none.
func (f *flight) classify(r *http.Request) {
	defer f.policy.catch(inClassify) // why stays a panic then
	f.kind = prompt.KindOf(r.URL.Path)
	known := true
	if len(r.Header["Content-Encoding"]) > 0 {
		f.coded, known = codings(r.Header)
	}
	if f.kind == prompt.Audio {
		f.form = boundary(r.Header)
	}
	if name := f.policy.settings.sessionHeader; name != "" {
		if v := r.Header[name]; len(v) > 0 && v[0] != "" {
			f.session = xxhash.Sum64String(v[0])
		}
	}
	switch {
	default:
		f.why = ""
	case r.Method != http.MethodPost:
		f.why = whyMethod
	case upgrades(r.Header):
		f.why = whyUpgrade
	case f.kind == prompt.None, f.kind == prompt.Root && !ofJSON(r.Header):
		f.why = whyPath
	case !known:
		f.why = whyEncoding
	case caddyhttp.IsIncremental(r.Header):
		f.why = whyIncremental
	}
}

// ofJSON reports whether a body is said to be JSON, as TGI requires.
func ofJSON(h http.Header) bool {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
}

// upgrades reports whether a connection is to become something else. Java's
// client, unless it is told not to, offers to go on in HTTP/2 with any request:
// who doesn't take the offer answers, and no engine takes it.
func upgrades(h http.Header) bool {
	if len(h["Upgrade"]) == 0 || !httpguts.HeaderValuesContainsToken(h["Connection"], "upgrade") {
		return false
	}
	return !httpguts.HeaderValuesContainsToken(h["Upgrade"], "h2c")
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
	if f.body != nil {
		f.body.land()
	}
}
