package caddyllm

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// observer is the proxy's own HTTP transport, watched. Embedding keeps what
// the proxy asks of a transport beside round trips: TLS, h2c, header
// operations, the scheme of health checks.
type observer struct {
	*reverseproxy.HTTPTransport
	policy *LLMPrefix
}

// RoundTrip sends a request as the embedded transport does. Requests that are
// not on a flight, such as health checks, pass unwatched.
func (o *observer) RoundTrip(req *http.Request) (*http.Response, error) {
	f, _ := req.Context().Value(flightKey{o.policy}).(*flight)
	var a *attempt
	if f != nil {
		a = f.current()
	}
	if a == nil {
		return o.HTTPTransport.RoundTrip(req)
	}
	res, err := o.HTTPTransport.RoundTrip(f.replayable(req))
	if err != nil || res.StatusCode > 299 {
		f.leaveBody(req.Context())
	}
	switch {
	case err != nil && (req.Context().Err() != nil || f.body != nil && f.body.broke()):
		a.finish(route.Cancelled, nil)
	case err != nil:
		a.finish(route.Failed, nil)
	case res.StatusCode == http.StatusSwitchingProtocols || res.Body == nil:
		// The proxy needs this body's Write; the request's end will release.
	case blames(res.StatusCode):
		a.refuse(res.Header)
	case res.StatusCode < 200 || res.StatusCode > 299:
		// What redirects, to another path or to a login, computes as little as what
		// refuses, and is idle for the same reason.
		a.finish(route.Rejected, nil)
	default:
		res.Body = newObservedBody(res, a, req)
	}
	return res, err
}

// blames reports whether a status says that the upstream can't serve, and not
// that the request is none that it would ever serve: llama.cpp refuses what it
// wasn't started for with 501.
func blames(status int) bool {
	switch status {
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500 || status == http.StatusTooManyRequests
}

// replayable marks a request that net/http may send again on a new connection
// when the idle one that it took turns out to have been closed: engines close
// idle connections long before Caddy does. net/http does so for requests that
// have this header, and an empty list of values is not sent. The header can't
// be set in Select, since the proxy rebuilds the headers of every attempt.
func (f *flight) replayable(req *http.Request) *http.Request {
	if f.body == nil || !f.body.whole || !f.policy.settings.retryStale || req.GetBody == nil {
		return req
	}
	if _, ok := req.Header["Idempotency-Key"]; ok {
		return req
	}
	// These headers are the attempt's own, or those that all attempts share,
	// and then the first one set it before any transport saw them.
	req.Header["Idempotency-Key"] = noValues
	return req
}

var noValues = []string{}

// observedBody watches an answer pass: its first byte, its end, and the usage
// in its last bytes. The proxy reads it on the request's goroutine.
type observedBody struct {
	io.ReadCloser
	attempt *attempt
	req     *http.Request
	empty   bool      // nothing may follow the header
	chunk   time.Time // when the last event came
	passing bool      // bytes of it went on
	opening opening
	said    sign // what that told
	deaf    bool // a fault of ours ended the watching
	tail    tail
	seeker  *idSeeker // of a response's id
}

func newObservedBody(res *http.Response, a *attempt, req *http.Request) *observedBody {
	b := &observedBody{
		ReadCloser: res.Body,
		attempt:    a,
		req:        req,
		// Of a silent recording there is nothing to write down.
		empty: res.StatusCode != http.StatusOK || a.flight.kind == prompt.Audio,
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	b.opening.events = strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
	// The last event of a response is all of it once more.
	b.tail.whole = !b.opening.events || a.flight.kind == prompt.Responses
	if a.flight.kind == prompt.Responses {
		b.seeker = new(idSeeker)
	}
	return b
}

// Read passes on what the upstream sent, and tells what it means.
func (b *observedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if !b.passing {
			b.passing = true
			if f := b.attempt.flight; f.body != nil {
				f.body.spend()
			}
		}
		if !b.deaf {
			b.watch(p[:n])
		}
	}
	switch {
	case err == nil:
	case err == io.EOF:
		b.end(route.Completed)
		b.attempt.flight.done()
	case b.req.Context().Err() != nil:
		b.end(route.Cancelled)
	default:
		b.end(route.Failed)
	}
	return n, err
}

// watch looks at the next bytes.
func (b *observedBody) watch(p []byte) {
	defer func() {
		if recover() != nil {
			b.deaf = true // or each chunk would be told of
			caught(b.attempt.flight.policy.logger, inObserve)
		}
	}()
	b.tail.write(p)
	if b.said == undecided {
		if b.said = b.opening.read(p); b.said == computed {
			b.attempt.firstByte()
		}
	}
	if b.said == computed && b.opening.events && p[0] != ':' {
		b.beat(time.Now())
	}
	if b.seeker != nil {
		b.attempt.flight.policy.shared.responses.put(b.seeker.write(p), b.attempt.upstream)
	}
}

// beat lets the decision hear the engine's steps: each has an event in every
// stream. A comment is of no step.
func (b *observedBody) beat(now time.Time) {
	var gap time.Duration
	if !b.chunk.IsZero() {
		gap = now.Sub(b.chunk)
	}
	b.chunk = now
	b.attempt.choice.Pulse.Beat(now, gap)
}

// Close ends an answer that was not read to its end: the client left, or the
// proxy wants another one.
func (b *observedBody) Close() error {
	b.end(route.Cancelled)
	return b.ReadCloser.Close()
}

func (b *observedBody) end(end route.End) {
	if b.attempt.over.Load() {
		b.tail.release()
		return
	}
	end = b.judge(end)
	var usage *route.Usage
	if end == route.Completed {
		usage = b.usage()
	}
	b.tail.release()
	b.attempt.finish(end, usage)
}

// judge says how an answer of a good status really ended: an error in its place
// counts as its code would as a status, and a prompt that was answered with
// nothing was not.
func (b *observedBody) judge(end route.End) route.End {
	switch {
	case !b.attempt.choice.prompt || b.deaf:
	case b.said == computed:
		if end == route.Completed && b.opening.events && brokeOff(b.tail.bytes()) {
			return route.Failed
		}
	case b.said == errored:
		if !blamesEngine(b.tail.bytes()) {
			return route.Rejected
		}
		return route.Failed
	case end == route.Completed && !b.empty && (b.opening.events || !b.passing):
		return route.Failed
	}
	return end
}

// usage is what the answer told of its tokens, nil if nothing.
func (b *observedBody) usage() *route.Usage {
	defer b.attempt.flight.policy.catch(inUsage)
	usage := b.tail.usage()
	if usage != nil && usage.CachedKnown {
		b.attempt.flight.publishUsage(usage.CachedTokens)
	}
	return usage
}
