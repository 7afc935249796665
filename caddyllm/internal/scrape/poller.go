// Package scrape asks the engines how they are: one loop for all upstreams of
// all configs that share what is known of them. However many handlers name an
// upstream, and however often a config is loaded, it is asked once an interval.
package scrape

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/enginemetrics"
)

// Sink takes what scrapes came to. Scraped is called concurrently, but never
// for an upstream that nobody has asked for in the sink's name. It returns when
// the next scrape is wanted, by the start of this one: at Result.Every, or sooner.
type Sink interface {
	Scraped(Result) (next time.Duration)
}

// Result is what one scrape of one upstream came to.
type Result struct {
	Upstream string
	Page     *enginemetrics.Page // nil if the scrape failed
	Reason   string              // why it failed, a Reason constant; empty if it didn't
	Status   int                 // of the answer; 0 if there was none
	Took     time.Duration
	Every    time.Duration // the interval that is asked for
	// Changed says that Reason is another than before, and worth a word: an
	// upstream that is away for a day is told of once, and one that comes and
	// goes all the time not each time. Of several sinks, one is told so.
	Changed bool
	First   bool // to be told of this scrape, of several sinks
}

// Config bounds a Poller. The zero value is ready to use.
type Config struct {
	Timeout       time.Duration // of one scrape, body included; default 2s
	MaxConcurrent int           // scrapes at once; default 64
	MaxUpstreams  int           // further ones are not scraped; default 10,000
	PageLimit     int64         // bytes of one page; default enginemetrics.DefaultLimit
	// Rand gives numbers in [0, 1) for the jitter; default math/rand/v2.
	Rand func() float64
}

const (
	defaultInterval = time.Second
	// An engine renders its page on the loop that serves its requests, up to
	// 30 ms of work, so that a shorter interval would cost answers.
	minInterval = 50 * time.Millisecond
	// Loops started together, here and in other proxies, fall out of step.
	jitter = 0.1
	// An upstream that keeps failing is asked this many intervals apart at
	// most, and never further than maxBackoff unless its interval is longer.
	maxBackoffFactor = 10
	maxBackoff       = 30 * time.Second
	// Changes of one upstream's state that are told within a minute.
	maxChanges  = 6
	changesSpan = time.Minute
)

// Poller scrapes the upstreams that are registered. All methods may be called
// concurrently, and none but Run waits for I/O.
type Poller struct {
	cfg    Config
	wake   chan struct{}
	panics atomic.Uint64

	mu      sync.Mutex // guards all below; never held during I/O or calls of the sink
	targets map[string]*target
	// Upstreams that failed wait in a queue of their own and get half of the
	// slots, so that many that hang can't keep the others' numbers old.
	queues [2]queue
	active [2]int
}

const (
	healthy = iota
	failing
)

// New makes a Poller that scrapes nothing until Run is called.
func New(cfg Config) *Poller {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 2 * time.Second
	}
	if cfg.MaxConcurrent <= 0 {
		cfg.MaxConcurrent = 64
	}
	if cfg.MaxUpstreams <= 0 {
		cfg.MaxUpstreams = 10_000
	}
	if cfg.PageLimit <= 0 {
		cfg.PageLimit = enginemetrics.DefaultLimit
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	return &Poller{cfg: cfg, wake: make(chan struct{}, 1), targets: make(map[string]*target)}
}

// Panics counts the faults of fetches, of sinks, and of the Poller itself. None
// ended anything else; those of fetches are told as ReasonPanic.
func (p *Poller) Panics() uint64 { return p.panics.Load() }

// Run scrapes until ctx ends, and returns when the scrapes in progress have
// ended too. It may run once at a time.
func (p *Poller) Run(ctx context.Context) {
	var scrapes sync.WaitGroup
	defer scrapes.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if next, any := p.launch(ctx, &scrapes); any {
			timer.Reset(time.Until(next))
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-timer.C:
		}
	}
}

// launch starts the scrapes that are due and have a slot, and tells when the
// next one is due.
func (p *Poller) launch(ctx context.Context, scrapes *sync.WaitGroup) (next time.Time, any bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		if recover() != nil {
			p.panics.Add(1)
			next, any = time.Now().Add(defaultInterval), true
		}
	}()
	now := time.Now()
	// The failing first: their share is bounded, and else they might starve.
	for _, class := range [...]int{failing, healthy} {
		q := &p.queues[class]
		for q.Len() > 0 && p.free(class) {
			t := (*q)[0]
			if t.due.After(now) {
				if !any || t.due.Before(next) {
					next, any = t.due, true
				}
				break
			}
			heap.Pop(q)
			if p.expire(t, now); len(t.jobs) == 0 {
				continue
			}
			s := &attempt{target: t, class: class, job: t.jobs[len(t.jobs)-1].Job, place: t.place, start: now}
			s.ctx, s.cancel = context.WithTimeout(ctx, p.cfg.Timeout)
			t.current = s
			p.active[class]++
			// Ends with its context, at the latest after Timeout; Run waits.
			scrapes.Go(func() { p.run(s) })
		}
	}
	return next, any
}

func (p *Poller) free(class int) bool {
	if p.active[healthy]+p.active[failing] >= p.cfg.MaxConcurrent {
		return false
	}
	return class == healthy || p.active[failing] < max(1, p.cfg.MaxConcurrent/2)
}

// nudge makes Run look at the queues anew.
func (p *Poller) nudge() {
	select {
	case p.wake <- struct{}{}:
	default: // it is going to look anyway
	}
}
