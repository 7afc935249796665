package caddyllm

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/scrape"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// states holds what is learned, by name. A pool counts its users, so that a
// new config finds what the old one knew.
var states = caddy.NewUsagePool()

// state is the knowledge that policies of one name share: the router behind
// one mutex, which scrapes tell of the engines' queues. Requests of an ended
// config may outlive Destruct and still use it.
type state struct {
	key    string
	name   string
	block  int // prompt bytes
	poller *polling

	mu     sync.Mutex // guards router; never held during I/O
	router *route.Router

	sessions  homes // by hash of the session's header
	responses homes // by hash of the response's id

	journal journal // for those who look
	users   users   // the policies of this state
}

// loadState joins the state of s, made if it is the first to ask. The key has
// all that gives hashes their meaning.
func loadState(s settings) (*state, error) {
	key := fmt.Sprintf("%s|%d|%d", s.state, s.block, s.memory)
	if s.mark != "" {
		key += "|" + s.mark
	}
	v, _, err := states.LoadOrNew(key, func() (caddy.Destructor, error) {
		return newState(key, s)
	})
	if err != nil {
		return nil, err
	}
	return v.(*state), nil
}

func newState(key string, s settings) (*state, error) {
	poller, err := loadPolling()
	if err != nil {
		return nil, err
	}
	return &state{
		key:    key,
		name:   s.state,
		block:  s.block,
		poller: poller,
		router: route.New(route.Options{BlockBytes: s.block, MemoryBytes: s.memory, Seed: rand.Uint64()}),
	}, nil
}

func (s *state) release() error {
	_, err := states.Delete(s.key)
	return err
}

// Destruct implements caddy.Destructor.
func (s *state) Destruct() error { return s.poller.release() }

func (s *state) pick(now time.Time, r *route.Request, targets []route.Target) (c route.Choice, ok bool) {
	s.withRouter(func() { c, ok = s.router.Pick(now, r, targets) })
	return c, ok
}

// withRouter calls the router, and lets others in between the parts of what is
// left to do of a long prompt.
func (s *state) withRouter(do func()) {
	locked := func(do func()) (more bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		do()
		return s.router.Unsettled()
	}
	for more := locked(do); more; more = locked(s.router.Settle) {
		runtime.Gosched()
	}
}

func (s *state) firstByte(now time.Time, t route.Ticket) {
	s.withRouter(func() { s.router.FirstByte(now, t) })
}

func (s *state) done(now time.Time, t route.Ticket, end route.End, usage *route.Usage) {
	s.withRouter(func() { s.router.Done(now, t, end, usage) })
}

func (s *state) refused(now time.Time, t route.Ticket, wait time.Duration) {
	s.withRouter(func() { s.router.Refused(now, t, wait) })
}

func (s *state) snapshot(now time.Time) []route.Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.router.Snapshot(now)
}

// view is the snapshot with what the index of the same moment takes.
func (s *state) view(now time.Time) ([]route.Upstream, route.Index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.router.Snapshot(now), s.router.Index()
}

// Scraped implements scrape.Sink.
func (s *state) Scraped(r scrape.Result) (next time.Duration) {
	next = s.learn(&r)
	if r.First { // several states may share a scrape
		metrics.scraped(r.Upstream, r.Reason, r.Took)
	}
	switch upstream := zap.String("upstream", r.Upstream); {
	case !r.Changed:
	case r.Reason == "":
		logger().Info("upstream's load is known again", upstream)
	case r.Status != 0:
		logger().Warn("upstream's load is unknown; routing by own traffic",
			upstream, zap.String("reason", r.Reason), zap.Int("status", r.Status))
	default:
		logger().Warn("upstream's load is unknown; routing by own traffic", upstream, zap.String("reason", r.Reason))
	}
	return next
}

func (s *state) learn(r *scrape.Result) (next time.Duration) {
	next = r.Every
	defer func() {
		if recover() != nil {
			caught(logger(), inScrape)
		}
	}()
	s.journal.scraped(time.Now(), r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Reason == "" {
		s.router.Scraped(time.Now(), r.Upstream, &r.Page.Load)
	} else {
		s.router.ScrapeFailed(time.Now(), r.Upstream)
	}
	return s.router.ScrapeEvery(time.Now(), r.Every)
}

// logger is asked for anew each time: the state outlives the config whose
// logger a policy was given.
func logger() *zap.Logger {
	return caddy.Log().Named("http.reverse_proxy.selection_policies.llm_prefix")
}
