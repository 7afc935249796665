package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

// Machines differ in speed by ten and more, and so does this one with what else
// runs on it. The conversations' times are stretched until the servers have
// about as much to do as servers that someone pays for: idle ones would leave
// nothing to choose but the cache, and on overloaded ones all of the cache is
// held by requests under way.
const (
	// halfCached is what a request computes if half of its prompt is cached,
	// tokens.
	halfCached = 1400
	// wantedLoad is the share of the time that servers work if each request does
	// that much.
	wantedLoad = 0.5
	// slowest and fastest bound the stretch: a replay takes one to eight minutes.
	slowest, fastest = 0.3, 2.0
	paceRequests     = 4
)

// pace times requests on idle servers, all at once as in the replays, and
// returns the speed to replay at.
func (c *comparison) pace(ctx context.Context, t *trace.Trace, servers []*server) (float64, error) {
	var (
		mu     sync.Mutex
		wait   sync.WaitGroup
		took   time.Duration
		failed error
	)
	for i, v := range servers {
		wait.Go(func() {
			d, err := c.timeRequests(ctx, v, uint64(i))
			mu.Lock()
			defer mu.Unlock()
			took = max(took, d)
			if err != nil {
				failed = err
			}
		})
	}
	wait.Wait()
	if failed != nil {
		return 0, fmt.Errorf("finding the servers' speed: %w", failed)
	}
	work := took.Seconds() * float64(t.Requests()) / float64(len(servers))
	return min(max(length(t).Seconds()*wantedLoad/work, slowest), fastest), nil
}

// timeRequests is the time that one request of halfCached tokens takes.
func (c *comparison) timeRequests(ctx context.Context, v *server, seed uint64) (time.Duration, error) {
	random := rand.New(rand.NewPCG(workloadSeed, seed))
	var begin time.Time
	for i := range paceRequests + 1 {
		if i == 1 {
			begin = time.Now() // the first one loads what is loaded at first use
		}
		prompt := make([]int, halfCached)
		for j := range prompt {
			prompt[j] = 300 + random.IntN(1700)
		}
		body, err := json.Marshal(map[string]any{"model": modelName, "prompt": prompt, "max_tokens": c.maxTokens, "ignore_eos": true})
		if err != nil {
			return 0, err
		}
		x := exchange{name: "a timed request", path: "/v1/completions", body: string(body)}
		x.fill()
		if a, err := x.send(ctx, v.address); err != nil {
			return 0, err
		} else if a.status != 200 {
			return 0, fmt.Errorf("status %d: %.300s", a.status, a.body)
		}
	}
	return time.Since(begin) / paceRequests, nil
}

// length is the time from the first request of a trace to the last.
func length(t *trace.Trace) time.Duration {
	var last time.Duration
	for i := range t.Conversations {
		c := &t.Conversations[i]
		end := c.Start
		for j := range c.Turns {
			end += c.Turns[j].Gap
		}
		last = max(last, end)
	}
	return last
}
