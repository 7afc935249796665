package caddyllm

import (
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// attempt is one request sent to one upstream. Its reservation is released
// exactly once, whoever is first to know that it ended: the body's end, the
// round trip's error, the next Select of the request, or the request's end.
type attempt struct {
	flight   *flight
	upstream string
	choice   choice
	began    time.Time
	entry    entry       // in the journal
	answered atomic.Bool // the first byte was told
	over     atomic.Bool
}

func newAttempt(f *flight, upstream string, c choice) *attempt {
	return &attempt{flight: f, upstream: upstream, choice: c, began: time.Now()}
}

// firstByte tells the decision that the answer has begun.
func (a *attempt) firstByte() {
	defer a.flight.policy.catch(inObserve)
	if !a.choice.prompt || a.answered.Swap(true) {
		return
	}
	now := time.Now()
	a.flight.policy.shared.firstByte(now, a.choice.Ticket)
	if a.choice.stream {
		metrics.began(a.choice.FirstToken, now.Sub(a.began))
		a.flight.policy.shared.journal.began(now, a.entry, a.choice.FirstToken, now.Sub(a.began))
	}
}

// note enters the attempt in the journal, before anyone can end it.
func (a *attempt) note() {
	f := a.flight
	defer f.policy.catch(inObserve)
	kind := f.kind
	if f.why == whyMethod || f.why == whyUpgrade {
		kind = prompt.None
	}
	a.entry = f.policy.shared.journal.decided(a.began, kind, a.upstream, f.record.attempt+1, &a.choice)
}

func (a *attempt) finish(end route.End, usage *route.Usage) {
	defer a.flight.policy.catch(inObserve)
	if a.over.Swap(true) {
		return
	}
	now, shared := time.Now(), a.flight.policy.shared
	if a.choice.prompt {
		shared.done(now, a.choice.Ticket, end, usage)
		metrics.ended(&a.choice, usage)
	}
	shared.journal.ended(now, a.entry, end, &a.choice, usage)
}

// refuse ends an attempt whose upstream didn't take it: it failed, or wants no
// more work for a time that it may have told.
func (a *attempt) refuse(h http.Header) {
	defer a.flight.policy.catch(inObserve)
	now := time.Now()
	wait, ok := retryAfter(h, now)
	if !ok {
		a.finish(route.Failed, nil)
		return
	}
	if a.over.Swap(true) {
		return
	}
	shared := a.flight.policy.shared
	if a.choice.prompt {
		shared.refused(now, a.choice.Ticket, wait)
	}
	shared.journal.ended(now, a.entry, route.Rejected, &a.choice, nil)
}

// listen is for transports that can't be wrapped: the trace tells that there is
// an answer, and the request's context of the end. What comes of a stream isn't
// seen: engines send its header long before its first token. The trace starts
// from the context of the first attempt, or those of retries would pile up.
func (a *attempt) listen(r *http.Request) {
	*r = *r.WithContext(httptrace.WithClientTrace(a.flight, &httptrace.ClientTrace{
		GotFirstResponseByte: a.firstByte,
	}))
}

// abandon ends an attempt whose request is over. Behind a transport that can't
// be watched, that is how answered requests end too.
func (a *attempt) abandon() {
	if a.flight.policy.upstreams.blind && a.answered.Load() {
		a.finish(route.Completed, nil)
		return
	}
	a.finish(route.Cancelled, nil)
}
