package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/gateway"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

// stage is what a run plays on.
type stage struct {
	o         options
	dir       string
	rng       *rand.Rand
	servers   []*server
	reference *server // nothing happens to it
	caddy     *gateway.Gateway
	good, bad []gateway.Config
	taken     net.Listener
	client    *http.Client
	answers   map[chat]string // what is right, by chat, streamed or not

	mu      sync.Mutex
	reloads []span
	refused int      // configs that were refused as they must
	failed  []string // reloads that came out wrong
}

func newStage(ctx context.Context, dir string, o options) (s *stage, err error) {
	s = &stage{o: o, dir: dir, rng: rand.New(rand.NewPCG(o.seed, 0)), answers: make(map[chat]string)}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	for i := range servers {
		// Some milliseconds for a token: answers take a moment.
		one, err := startServer(ctx, o.vllmsim, serverDir(dir, i), "1")
		if err != nil {
			return s, err
		}
		s.servers = append(s.servers, one)
	}
	if s.reference, err = startServer(ctx, o.vllmsim, serverDir(dir, servers), "1000"); err != nil {
		return s, err
	}
	if s.taken, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return s, fmt.Errorf("taking a port: %w", err)
	}
	var upstreams []string
	for _, one := range s.servers {
		upstreams = append(upstreams, one.address)
	}
	s.good, s.bad = configs(upstreams, s.taken.Addr().String())
	if s.caddy, err = gateway.Start(ctx, dir, o.caddy, s.good[0]); err != nil {
		return s, err
	}
	s.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64, DialContext: dialDated}}
	return s, nil
}

func (s *stage) stop() {
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	var children []*process.Child
	if s.caddy != nil {
		children = append(children, s.caddy.Child)
	}
	for _, one := range append(s.servers, s.reference) {
		if one != nil && one.Child != nil {
			children = append(children, one.Child)
		}
	}
	for _, c := range children {
		c.Stop()
	}
	if s.taken != nil {
		_ = s.taken.Close()
	}
}

// right is the answer to a chat, by a server that nothing happens to.
func (s *stage) right(ctx context.Context, c chat) (string, error) {
	c.stream = false
	e := ask(ctx, s.client, s.reference.address, c)
	// It closes connections that were idle, and a request may be on its way.
	for try := 0; e.err != nil && e.status == 0 && try < 3; try++ {
		e = ask(ctx, s.client, s.reference.address, c)
	}
	if e.err != nil || e.status != http.StatusOK || e.text == "" {
		return "", fmt.Errorf("asking for a right answer: status %d, %w", e.status, e.err)
	}
	return e.text, nil
}

// know learns the right answer to a chat, unless it is known.
func (s *stage) know(ctx context.Context, c chat) error {
	s.mu.Lock()
	_, ok := s.answers[c]
	s.mu.Unlock()
	if ok {
		return nil
	}
	want, err := s.right(ctx, c)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[c] = want
	return nil
}

// warm asks everything once through Caddy, so that what follows adds little to
// what it knows, and learns the right answers.
func (s *stage) warm(ctx context.Context) error {
	work := make(chan chat)
	errs := make(chan error, 8)
	var workers sync.WaitGroup
	for range cap(errs) {
		workers.Go(func() {
			var err error
			for c := range work {
				if err != nil {
					continue // the others are not kept waiting
				}
				if err = s.know(ctx, c); err != nil {
					continue
				}
				s.mu.Lock()
				want := s.answers[c]
				s.mu.Unlock()
				if e := ask(ctx, s.client, s.caddy.Address, c); e.err != nil || e.text != want || !e.whole {
					err = fmt.Errorf("warming up: status %d, %.100q: %w", e.status, e.text, errors.Join(e.err, errWrong))
				}
			}
			errs <- err
		})
	}
	for conversation := range conversations {
		for turn := range turns {
			work <- chat{conversation, turn, turn%2 == 0}
		}
	}
	close(work)
	workers.Wait()
	var all []error
	for range cap(errs) {
		all = append(all, <-errs)
	}
	for conversation := range conversations { // streamed or not, it says the same
		for turn := range turns {
			s.answers[chat{conversation, turn, turn%2 != 0}] = s.answers[chat{conversation, turn, turn%2 == 0}]
		}
	}
	return errors.Join(all...)
}

var errWrong = errors.New("not the right answer")

// reload replaces Caddy's config n times, and a quarter as often with one that
// must be refused.
func (s *stage) reload(ctx context.Context, rng *rand.Rand) {
	n := s.o.reloads
	for i := range n {
		if i%4 == 3 {
			c := s.bad[rng.IntN(len(s.bad))]
			var refused *gateway.RefusedError
			err := s.timed(func() error { return s.caddy.Reload(ctx, c) })
			s.mu.Lock()
			if errors.As(err, &refused) {
				s.refused++
			} else {
				s.failed = append(s.failed, fmt.Sprintf("a config that must be refused: %v", err))
			}
			s.mu.Unlock()
		}
		if err := s.timed(func() error { return s.caddy.Reload(ctx, s.good[i%len(s.good)]) }); err != nil {
			s.mu.Lock()
			s.failed = append(s.failed, err.Error())
			s.mu.Unlock()
		}
		wait(ctx, time.Duration(float64(s.o.length)/float64(n)*(0.5+rng.Float64()*0.9)))
	}
	if err := s.timed(func() error { return s.caddy.Reload(ctx, s.good[0]) }); err != nil {
		s.failed = append(s.failed, err.Error())
	}
}

func (s *stage) timed(load func() error) error {
	s.mu.Lock()
	s.reloads = append(s.reloads, span{from: time.Now()})
	s.mu.Unlock()
	err := load()
	s.mu.Lock()
	s.reloads[len(s.reloads)-1].to = time.Now()
	s.mu.Unlock()
	return err
}

// reloading reports whether a time is within moments of a reload.
func (s *stage) reloading(at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.reloads {
		if !at.Before(r.from) && (r.to.IsZero() || !at.After(r.to.Add(moment))) {
			return true
		}
	}
	return false
}

// outdated reports whether a connection is of a config that a reload has replaced
// since: Caddy closes it when the answer under way on it is whole, and a client
// may be about to use it again.
func (s *stage) outdated(made time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !made.IsZero() && slices.ContainsFunc(s.reloads, func(r span) bool { return r.to.IsZero() || r.to.After(made) })
}

// span is the time that something took; to is zero until it ends.
type span struct{ from, to time.Time }

// moment is how long after a reload a connection may turn out to be closed.
const moment = 2 * time.Second
