package scrape

import (
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
	ReasonStatus        = "status"         // not 200: wrong path, a missing key, a redirect
	ReasonNotMetrics    = "not_metrics"    // empty, HTML, JSON
	ReasonUnknownEngine = "unknown_engine" // metrics, but no queue that we can read
	ReasonTooLarge      = "too_large"      // past the limit of a page
	ReasonOther         = "other"
)

// attempt is one scrape.
type attempt struct {
	target  *target
	class   int
	reg     registration
	start   time.Time
	ctx     context.Context
	cancel  context.CancelFunc
	dropped bool // its owner is gone; guarded by the poller's mutex
}

// run scrapes, tells the sink, and queues the target again.
func (p *Poller) run(s *attempt) {
	defer s.cancel()
	reason := ReasonOther
	defer func() {
		// A panic in a fetch is one upstream's bad scrape, not the end of
		// the proxy.
		if recover() != nil {
			p.panics.Add(1)
			reason = ReasonOther
			p.tell(s, nil, reason)
		}
		p.finish(s, reason)
	}()
	var page enginemetrics.Page
	page, reason = p.fetch(s)
	p.tell(s, &page, reason)
}

// tell reports to the sink, unless nobody wants to know any more.
func (p *Poller) tell(s *attempt, page *enginemetrics.Page, reason string) {
	p.mu.Lock()
	dropped := s.dropped
	p.mu.Unlock()
	if dropped || errors.Is(context.Cause(s.ctx), context.Canceled) {
		return
	}
	defer func() {
		if recover() != nil {
			p.panics.Add(1)
		}
	}()
	took := time.Since(s.start)
	if reason == "" {
		p.sink.Scraped(s.target.id, took, page)
	} else {
		p.sink.ScrapeFailed(s.target.id, reason, took)
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
	if p.targets[t.id] != t {
		return
	}
	switch {
	case s.dropped: // says nothing about the upstream
	case reason == "":
		t.fails = 0
	default:
		t.fails++
	}
	pause := p.pause(t)
	t.due = s.start.Add(pause)
	// A page that takes an interval to render must not be asked for all the
	// time.
	if rest := time.Now().Add(pause / 2); rest.After(t.due) {
		t.due = rest
	}
	p.enqueue(t)
}

// pause is the time from the start of a target's last scrape to its next.
func (p *Poller) pause(t *target) time.Duration {
	interval := t.interval()
	d := interval
	if t.fails > 1 {
		factor := min(1<<min(t.fails-1, 10), maxBackoffFactor)
		d = max(interval, min(interval*time.Duration(factor), maxBackoff))
	}
	return time.Duration(float64(d) * (1 - jitter + 2*jitter*p.cfg.Rand()))
}

// fetch gets one page; the reason is empty if it tells of a queue.
func (p *Poller) fetch(s *attempt) (enginemetrics.Page, string) {
	body, status, _, err := s.reg.fetch(s.ctx)
	if body != nil {
		defer body.Close()
	}
	switch {
	case err != nil:
		return enginemetrics.Page{}, classify(s.ctx, err)
	case status != http.StatusOK:
		return enginemetrics.Page{}, ReasonStatus
	case body == nil:
		return enginemetrics.Page{}, ReasonNotMetrics
	}
	page, err := enginemetrics.Parse(body, p.cfg.PageLimit)
	switch {
	case err != nil:
		return page, classify(s.ctx, err)
	case page.Samples == 0:
		return page, ReasonNotMetrics
	case page.Load.Empty():
		return page, ReasonUnknownEngine
	}
	return page, ""
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
	}
	return ReasonOther
}
