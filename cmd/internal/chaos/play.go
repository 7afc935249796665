package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/gateway"
)

// outcome is what a run came to.
type outcome struct {
	ends         []end
	left         int // requests that their client left on purpose
	script       []trouble
	began        time.Time // the script's
	seen         map[string]bool
	before, then gateway.Inside
	inFlight     float64
	panics       float64
	logged       int           // lines of panics
	calm         time.Duration // until all servers were in use again
	state        string        // the policy's, where they weren't
	troubles     []error       // of the run itself
	stage        *stage
}

// calm is how long the servers may take to be in use again once all is well:
// what failed often is left alone for a minute at most, and what seemed slow is
// tried again after five. In a short run, some may still be waiting for that.
const (
	calm      = 330 * time.Second
	calmShort = 12 * time.Second
)

func (o *options) calm() (limit time.Duration, unused int) {
	if o.length <= shortLength {
		return calmShort, sick
	}
	return calm, 0
}

func (s *stage) play(ctx context.Context) (*outcome, error) {
	out := &outcome{stage: s, seen: make(map[string]bool)}
	if err := s.warm(ctx); err != nil {
		return nil, err
	}
	var err error
	if out.before, err = s.settle(ctx, gateway.Inside{}); err != nil {
		return nil, err
	}

	out.script = write(s.rng, s.o.length)
	out.began = time.Now()
	var others sync.WaitGroup
	var mu sync.Mutex
	report := func(err error) {
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			out.troubles = append(out.troubles, err)
		}
	}
	others.Go(func() { report(s.suffer(ctx, out)) })
	reloads := rand.New(rand.NewPCG(s.o.seed, 2))
	others.Go(func() { s.reload(ctx, reloads) })
	stop := make(chan struct{})
	go func() { // ends with those two
		others.Wait()
		close(stop)
	}()
	load := rand.New(rand.NewPCG(s.o.seed, 3))
	known := func() chat { return chat{load.IntN(conversations), load.IntN(turns), load.IntN(2) == 0} }
	s.load(ctx, load, known, out, stop)

	// All is well again: each server gets its requests again, of those that have
	// nothing in common with what another holds.
	out.forget()
	well := time.Now()
	most, _ := s.o.calm()
	limit := time.NewTimer(most)
	defer limit.Stop()
	again := make(chan struct{})
	go func() { // ends when all are in use, or time is up
		defer close(again)
		for !out.all() {
			select {
			case <-limit.C:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	fresh := conversations
	s.load(ctx, load, func() chat {
		fresh++
		return chat{fresh, 0, load.IntN(2) == 0}
	}, out, again)
	out.calm = time.Since(well)
	s.client.CloseIdleConnections()
	if !out.all() { // what the policy thinks of those that it leaves out
		if out.state, err = s.caddy.Ask(ctx, "/llm_prefix/state"); err != nil {
			return nil, err
		}
	}

	if out.then, err = s.settle(ctx, out.before); err != nil {
		return nil, err
	}
	if out.inFlight, err = s.caddy.Sum(ctx, "caddy_llm_prefix_inflight_requests"); err != nil {
		return nil, err
	}
	if out.panics, err = s.caddy.Sum(ctx, "caddy_llm_prefix_panics_total"); err != nil {
		return nil, err
	}
	if out.logged, err = panics(s.dir); err != nil {
		return nil, err
	}
	return out, errors.Join(append(out.troubles, ctx.Err())...)
}

// suffer goes through the script.
func (s *stage) suffer(ctx context.Context, out *outcome) error {
	var mu sync.Mutex
	var all []error
	var running sync.WaitGroup
	for i, t := range out.script {
		wait(ctx, time.Until(out.began.Add(t.at)))
		if ctx.Err() != nil {
			break
		}
		if s.o.verbose {
			fmt.Printf("%6.1fs server %d (%s) is %s for %v\n", t.at.Seconds(), t.server, s.servers[t.server].address, t.kind, t.lasts)
		}
		running.Go(func() {
			one := s.servers[t.server]
			one.trouble.Lock()
			defer one.trouble.Unlock()
			out.script[i].at = time.Since(out.began) // as it really was
			err := one.suffer(ctx, t)
			out.script[i].lasts = time.Since(out.began) - out.script[i].at
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, fmt.Errorf("%s: %w", t.kind, err))
			}
		})
	}
	running.Wait()
	return errors.Join(all...)
}

// load sends requests, at times that are a Poisson process, until stop, and
// waits for their answers. One of 20 clients leaves before its answer is whole.
func (s *stage) load(ctx context.Context, rng *rand.Rand, next func() chat, out *outcome, stop <-chan struct{}) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		pause := time.Duration(rng.ExpFloat64() / s.o.rate * float64(time.Second))
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		c := next()
		if rng.IntN(20) == 0 {
			after := time.Duration(rng.IntN(400)) * time.Millisecond
			running.Go(func() { s.leave(ctx, c, after) })
			out.note(nil)
			continue
		}
		running.Go(func() {
			if err := s.know(ctx, c); err != nil {
				out.note(&end{chat: c, began: time.Now(), ended: time.Now(), err: err})
				return
			}
			e := ask(ctx, s.client, s.caddy.Address, c)
			// A reload closes connections, of which a client learns when it has
			// sent a request: no proxy can help that, and clients send again.
			for e.err != nil && e.status == 0 && e.resent < 3 && (s.reloading(time.Now()) || s.outdated(e.reused)) {
				resent, began := e.resent+1, e.began
				e = ask(ctx, s.client, s.caddy.Address, c)
				e.resent, e.began = resent, began
			}
			out.note(&e)
		})
	}
}

func (s *stage) leave(ctx context.Context, c chat, after time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	ask(ctx, s.client, s.caddy.Address, c)
}

var noting sync.Mutex

func (o *outcome) note(e *end) {
	noting.Lock()
	defer noting.Unlock()
	if e == nil {
		o.left++
		return
	}
	o.ends = append(o.ends, *e)
	if e.status == http.StatusOK {
		o.seen[e.upstream] = true
	}
}

func (o *outcome) forget() {
	noting.Lock()
	defer noting.Unlock()
	clear(o.seen)
}

// all reports whether each server has answered since seen was cleared.
func (o *outcome) all() bool {
	noting.Lock()
	defer noting.Unlock()
	return len(o.seen) == servers
}

// settle waits until nothing is under way and Caddy looks as it did, or time is
// up, and tells how it looks.
func (s *stage) settle(ctx context.Context, before gateway.Inside) (in gateway.Inside, err error) {
	deadline := time.Now().Add(20 * time.Second)
	// Idle connections to servers last 4 seconds.
	wait(ctx, 5*time.Second)
	for {
		n, err := s.caddy.Sum(ctx, "caddy_llm_prefix_inflight_requests")
		if err != nil {
			return in, err
		}
		if in, err = s.caddy.Look(ctx); err != nil {
			return in, err
		}
		calm := n == 0 && (before == gateway.Inside{} || in.Goroutines <= before.Goroutines+goroutinesMore && in.Heap <= heapBound(before))
		if calm || time.Now().After(deadline) || ctx.Err() != nil {
			return in, ctx.Err()
		}
		wait(ctx, time.Second)
	}
}
