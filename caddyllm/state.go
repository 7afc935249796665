package caddyllm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/enginemetrics"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/scrape"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// states holds what is learned, by name. A pool counts its users, so that a
// new config finds what the old one knew, and the last one to leave ends the
// polling.
var states = caddy.NewUsagePool()

// state is the knowledge that policies of one name share: the router behind
// one mutex, and the poller that tells it of the engines' queues. Requests of
// an ended config may outlive Destruct and still use it.
type state struct {
	key    string
	name   string
	poller *scrape.Poller

	mu     sync.Mutex // guards router; never held during I/O
	router *route.Router

	healthMu sync.Mutex
	health   map[string]string // by upstream, what its last scrape came to

	start  sync.Once
	cancel context.CancelFunc
	ctx    context.Context
	ended  chan struct{}
}

// loadState joins the state of s, made if it is the first to ask. The key has
// all that gives hashes their meaning.
func loadState(s settings) (*state, error) {
	key := fmt.Sprintf("%s|%d|%d", s.state, s.block, s.memory)
	v, _, err := states.LoadOrNew(key, func() (caddy.Destructor, error) {
		return newState(key, s), nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*state), nil
}

func newState(key string, s settings) *state {
	st := &state{
		key:    key,
		name:   s.state,
		health: make(map[string]string),
		ended:  make(chan struct{}),
		router: route.New(route.Options{BlockBytes: s.block, MemoryBytes: s.memory, Seed: rand.Uint64()}),
	}
	st.ctx, st.cancel = context.WithCancel(context.Background())
	st.poller = scrape.New(scrape.Config{}, st)
	return st
}

func (s *state) release() error {
	_, err := states.Delete(s.key)
	return err
}

// startPolling starts the one goroutine of this package that lives on. The
// states' last user ends it, and waits for it.
func (s *state) startPolling() {
	s.start.Do(func() {
		go func() {
			defer close(s.ended)
			s.poller.Run(s.ctx)
		}()
	})
}

// Destruct implements caddy.Destructor.
func (s *state) Destruct() error {
	s.cancel()
	// If polling never started, it shall not start any more.
	s.start.Do(func() { close(s.ended) })
	<-s.ended
	return nil
}

func (s *state) pick(now time.Time, r *route.Request, targets []route.Target) (route.Choice, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.router.Pick(now, r, targets)
}

func (s *state) firstByte(now time.Time, t route.Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.router.FirstByte(now, t)
}

func (s *state) done(now time.Time, t route.Ticket, end route.End, usage *route.Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.router.Done(now, t, end, usage)
}

func (s *state) snapshot(now time.Time) []route.Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.router.Snapshot(now)
}

// Scraped implements scrape.Sink.
func (s *state) Scraped(upstream string, took time.Duration, page *enginemetrics.Page) {
	s.mu.Lock()
	s.router.Scraped(time.Now(), upstream, &page.Load)
	s.mu.Unlock()
	s.noteHealth(upstream, "", took)
}

// ScrapeFailed implements scrape.Sink.
func (s *state) ScrapeFailed(upstream, reason string, took time.Duration) {
	s.mu.Lock()
	s.router.ScrapeFailed(time.Now(), upstream)
	s.mu.Unlock()
	s.noteHealth(upstream, reason, took)
}

// noteHealth counts a scrape, and logs it if it came to something else than
// the one before: an engine that is away for a day is one line, not 86,400.
func (s *state) noteHealth(upstream, reason string, took time.Duration) {
	observeScrape(upstream, reason, took)
	s.healthMu.Lock()
	before, known := s.health[upstream]
	if len(s.health) < maxTracked || known {
		s.health[upstream] = reason
	}
	s.healthMu.Unlock()
	switch {
	case known && before == reason, !known && reason == "":
	case reason == "":
		logger().Info("upstream's load is known again", zap.String("upstream", upstream))
	default:
		logger().Warn("upstream's load is unknown; routing by own traffic",
			zap.String("upstream", upstream), zap.String("reason", reason))
	}
}

// maxTracked bounds what is kept for logs and labels by upstream. Upstreams of
// dynamic sources may come and go for ever.
const maxTracked = 10_000

// logger is asked for anew each time: the state outlives the config whose
// logger a policy was given.
func logger() *zap.Logger {
	return caddy.Log().Named("http.reverse_proxy.selection_policies.llm_prefix")
}
