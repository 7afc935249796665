package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/gateway"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/replay"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

// measure makes one replay.
func (c *comparison) measure(ctx context.Context, dir, name string, speed float64, t *trace.Trace, servers []*server) (outcome, error) {
	o := outcome{}
	before, err := counters(ctx, servers)
	if err != nil {
		return o, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return o, fmt.Errorf("making a folder: %w", err)
	}
	options := replay.Options{Model: modelName, Concurrency: c.concurrency, Speed: speed, MaxTokens: c.maxTokens}
	begin := time.Now()
	var records []replay.Record
	if name == pinned {
		records, err = pin(ctx, t, servers, options)
	} else {
		records, err = c.throughCaddy(ctx, dir, name, t, servers, options, &o)
	}
	if err != nil {
		return o, err
	}
	o.Result = replay.Summarize(name, records, time.Since(begin))
	for i := range records {
		switch records[i].Class {
		case "", replay.ClassStreamWithoutDone, replay.ClassErrorInStream: // there was a header
		default:
			o.Lost++
		}
	}
	alive := servers
	if name == killed {
		alive, before = servers[1:], before[1:]
	}
	after, err := counters(ctx, alive)
	if err != nil {
		return o, err
	}
	var spread []int64
	for i := range after {
		o.ServerQueries += after[i].Queries - before[i].Queries
		o.ServerHits += after[i].Hits - before[i].Hits
		spread = append(spread, int64(after[i].finished()-before[i].finished()))
	}
	o.SetUpstreams(spread)
	return o, nil
}

// pin sends each conversation to one server, without a gateway.
func pin(ctx context.Context, t *trace.Trace, servers []*server, options replay.Options) ([]replay.Record, error) {
	var (
		workers sync.WaitGroup
		mu      sync.Mutex
		all     []replay.Record
		failed  error
	)
	for i, v := range servers {
		var own []trace.Conversation
		for j := i; j < len(t.Conversations); j += len(servers) {
			own = append(own, t.Conversations[j])
		}
		o := options
		o.URL = "http://" + v.address
		workers.Go(func() {
			records, err := replay.Run(ctx, own, o)
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, records...), errors.Join(failed, err)
		})
	}
	workers.Wait()
	return all, failed
}

// throughCaddy replays through a gateway of its own, and kills one server on
// the way if the name says so.
func (c *comparison) throughCaddy(ctx context.Context, dir, name string, t *trace.Trace, servers []*server, options replay.Options, o *outcome) ([]replay.Record, error) {
	config := gateway.Config{Policy: name, Metrics: name == ours || name == killed}
	if name == killed {
		config.Policy = ours
	}
	for _, v := range servers {
		config.Upstreams = append(config.Upstreams, v.address)
	}
	proxy, err := gateway.Start(ctx, dir, c.caddy, config)
	if err != nil {
		return nil, err
	}
	defer proxy.Stop()
	options.URL = "http://" + proxy.Address
	var k *killer
	if name == killed {
		// Answers are asked for whole: a stream's header comes from vLLM as soon as
		// it has taken the request and goes straight to the client, and then it is
		// too late to ask another server. A whole answer begins when it is ready.
		options.NoStream = true
		k = newKiller(servers[0], proxy.Metrics, t.Requests()/3)
		options.OnRecord = k.count
		watched, stop := context.WithCancel(ctx)
		defer stop()
		go k.run(watched)
		defer func() { stop(); <-k.ended }()
	}
	records, err := replay.Run(ctx, t.Conversations, options)
	if err != nil || !config.Metrics {
		return records, err
	}
	if k != nil {
		if o.Waiting, err = k.result(); err != nil {
			return nil, err
		}
	}
	o.Predicted, o.Cached, err = predictions(ctx, proxy.Metrics)
	return records, err
}
