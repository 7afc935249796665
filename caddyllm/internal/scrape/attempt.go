package scrape

import (
	"compress/gzip"
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/enginemetrics"
)

// Why a scrape failed; a bounded set, fit for a metric's label.
const (
	ReasonRefused       = "refused"        // nothing listens there
	ReasonTimeout       = "timeout"        // no whole page in time
	ReasonRedirect      = "redirect"       // to another host or port, or more than once
	ReasonStatus        = "status"         // not 200: a wrong path, a missing key
	ReasonNotMetrics    = "not_metrics"    // empty, HTML, JSON, or not to be decoded
	ReasonUnknownEngine = "unknown_engine" // metrics, but no queue that we can read
	ReasonTooLarge      = "too_large"      // past the limit of a page
	ReasonPanic         = "panic"          // a fault of ours
	ReasonOther         = "other"
)

// attempt is one scrape.
type attempt struct {
	target  *target
	class   int
	job     Job
	place   int // of the job's, the one that had the page the last time
	start   time.Time
	ctx     context.Context
	cancel  context.CancelFunc
	dropped bool          // its owner is gone; guarded by the poller's mutex
	sooner  time.Duration // than the interval, as sinks want the next one; 0 if they don't
}

// run scrapes, tells the sinks, and queues the target again.
func (p *Poller) run(s *attempt) {
	defer s.cancel()
	defer p.survive()
	r := p.fetchSafely(s)
	p.tell(s, r)
	p.finish(s, r.Reason)
}

// fetchSafely makes a panic in a fetch one upstream's bad scrape, not the end of
// the proxy.
func (p *Poller) fetchSafely(s *attempt) (r Result) {
	defer func() {
		if recover() != nil {
			p.panics.Add(1)
			r = Result{Reason: ReasonPanic}
		}
	}()
	return p.fetch(s)
}

// listener is one that is told of a target's scrapes.
type listener struct {
	sink     Sink
	upstream string
}

// tell reports to all sinks of the target, unless nobody wants to know any
// more.
func (p *Poller) tell(s *attempt, r Result) {
	if errors.Is(context.Cause(s.ctx), context.Canceled) {
		return
	}
	r.Took = time.Since(s.start)
	p.mu.Lock()
	var to []listener
	if !s.dropped {
		to = s.target.listeners()
		r.Every = s.target.interval()
		r.Changed = s.target.changed(time.Now(), r.Reason)
	}
	p.mu.Unlock()
	for i, l := range to {
		r.Upstream = l.upstream
		r.First = i == 0
		r.Changed = r.Changed && r.First
		if next := p.report(l.sink, r); next < r.Every && (s.sooner == 0 || next < s.sooner) {
			s.sooner = max(next, minInterval)
		}
	}
}

func (p *Poller) report(to Sink, r Result) (next time.Duration) {
	next = r.Every // also after a panic
	defer p.survive()
	return to.Scraped(r)
}

// survive, deferred, counts a panic and ends it there.
func (p *Poller) survive() {
	if recover() != nil {
		p.panics.Add(1)
	}
}

// finish gives the slot back and plans the target's next scrape.
func (p *Poller) finish(s *attempt, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := s.target
	p.active[s.class]--
	t.current = nil
	p.nudge()
	if p.targets[t.key] != t {
		return
	}
	switch {
	case s.dropped: // says nothing about the upstream
	case reason == "":
		t.fails = 0
		t.place = s.place
	default:
		t.fails++
	}
	pause := p.pause(t, s.sooner)
	t.due = s.start.Add(pause)
	// A page that takes an interval to render must not be asked for all the
	// time.
	if rest := time.Now().Add(pause / 2); rest.After(t.due) {
		t.due = rest
	}
	p.enqueue(t)
}

// pause is the time from the start of a target's last scrape to its next. After one
// that failed nobody gets it sooner.
func (p *Poller) pause(t *target, sooner time.Duration) time.Duration {
	interval := t.interval()
	d := interval
	if t.fails == 0 && sooner > 0 {
		d = min(interval, sooner)
	}
	if t.fails > 1 {
		factor := min(1<<min(t.fails-1, 10), maxBackoffFactor)
		d = max(interval, min(interval*time.Duration(factor), maxBackoff))
	}
	return time.Duration(float64(d) * (1 - jitter + 2*jitter*p.cfg.Rand()))
}

// fetch looks for the page where it was the last time, and then at the other
// places. If none has it, the first place's answer is told, the one that the
// user knows of. An upstream that is away is so at all places.
func (p *Poller) fetch(s *attempt) Result {
	n := len(s.job.Places)
	failures := make([]Result, n)
	for i := range n {
		at := (s.place + i) % n
		r, away := p.fetchAt(s, s.job.Places[at])
		if r.Reason == "" {
			s.place = at
			return r
		}
		if away {
			return r
		}
		failures[at] = r
	}
	return failures[0]
}

// fetchAt gets one page, and tells whether other places would do no better.
func (p *Poller) fetchAt(s *attempt, fetch Fetch) (r Result, away bool) {
	body, status, err := fetch(s.ctx)
	if err != nil {
		return Result{Reason: classify(s.ctx, err)}, !undecodable(err)
	}
	if body == nil {
		body = http.NoBody
	}
	if status != http.StatusOK {
		drain(body)
		if redirects(status) {
			return Result{Reason: ReasonRedirect, Status: status}, false
		}
		return Result{Reason: ReasonStatus, Status: status}, false
	}
	defer body.Close()
	page, err := enginemetrics.Parse(body, p.cfg.PageLimit)
	switch {
	case err != nil:
		return Result{Reason: classify(s.ctx, err), Status: status}, !undecodable(err)
	case page.Samples == 0:
		return Result{Reason: ReasonNotMetrics, Status: status}, false
	case page.Load.Empty():
		return Result{Reason: ReasonUnknownEngine, Status: status}, false
	}
	return Result{Page: &page, Status: status}, false
}

func undecodable(err error) bool {
	return errors.Is(err, errCoding) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum)
}

func classify(ctx context.Context, err error) string {
	var ne net.Error
	switch {
	case errors.Is(err, enginemetrics.ErrTooLarge):
		return ReasonTooLarge
	case ctx.Err() != nil, errors.As(err, &ne) && ne.Timeout():
		return ReasonTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return ReasonRefused
	case undecodable(err):
		return ReasonNotMetrics
	}
	return ReasonOther
}
