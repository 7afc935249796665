package vllmmetrics

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
)

// stillness are the series that no load of this kind moves: what the simulator
// doesn't have, or what it counts otherwise.
var stillness = map[string]bool{
	"vllm:cache_config_info": true, "process_start_time_seconds": true, "vllm:engine_sleep_state": true,
	"vllm:external_prefix_cache_queries_total": true, "vllm:external_prefix_cache_hits_total": true,
	"vllm:mm_cache_queries_total": true, "vllm:mm_cache_hits_total": true, "vllm:admission_rejections_total": true,
	"vllm:prompt_tokens_recomputed_total": true, "vllm:estimated_flops_per_gpu_total": true,
	"vllm:estimated_read_bytes_per_gpu_total": true, "vllm:estimated_write_bytes_per_gpu_total": true,
}

// FC-111: under a load of ten requests every gauge and counter moves, with one
// engine and with four, and running and waiting are all that is open.
func TestFC111UnderLoadEverythingMoves(t *testing.T) {
	for _, profile := range []Profile{V08, Main, Rust} {
		for _, engines := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s-dp%d", profile, engines), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { moves(t, profile, engines) })
			})
		}
	}
}

func moves(t *testing.T, profile Profile, engines int) {
	// Two sequences of 40 blocks don't fit 64 blocks to their ends: one is
	// preempted. One of three requests is for an adapter that there is no slot for
	// beside the others'.
	config := simengine.Config{Blocks: 65, MaxNumSeqs: 2, MaxLoRAs: 1, Cost: simengine.Cost{Base: 10 * time.Millisecond}}
	var group *live.Group
	e := newExporter(t, Options{
		Model: "m", Profile: profile, Engines: engines, MaxLoRAs: 1, Start: time.Now(), Cache: CacheInfoOf(config),
		Stats: func(rank int) simengine.Stats { return group.Rank(rank).Stats() },
	})
	var open atomic.Int64
	var drivers []*live.Driver
	for rank := range engines {
		engine, err := simengine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		observe := e.Observer(rank)
		drivers = append(drivers, live.New(engine, live.Options{Observe: func(outputs []simengine.Output) {
			observe(outputs)
			for _, o := range outputs {
				if o.Finished {
					open.Add(-1)
				}
			}
		}}))
	}
	group, err := live.NewGroup(drivers...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = group.Run(ctx) }()
	defer func() { cancel(); <-done }()
	synctest.Wait()

	// Ten for each engine, all with a block in common.
	for i := range 10 * engines {
		reason := []string{simengine.ReasonStop, simengine.ReasonLength}[i/engines%2]
		blocks := []uint64{1, uint64(100 + i), uint64(200 + i), uint64(300 + i), uint64(400 + i)}
		_, err := group.Generate(ctx, simengine.Request{PromptTokens: 80, Blocks: blocks, OutputTokens: 560, Finish: reason, Adapter: string("aab"[i/engines%3]),
			Source: &Params{N: 1, MaxTokens: 560}})
		if err != nil {
			t.Fatal(err)
		}
		open.Add(1)
	}
	seen := map[string]map[float64]bool{}
	look := func() {
		for _, f := range parse(t, render(t, e)) {
			for _, m := range f.GetMetric() {
				note(seen, f, m)
			}
		}
	}
	look()
	for i := range 200 {
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if s := group.Stats(); int64(s.Running+s.Waiting) != open.Load() {
			t.Fatalf("%d running and %d waiting of %d open requests", s.Running, s.Waiting, open.Load())
		}
		if i%16 == 0 {
			look()
		}
	}
	if n := open.Load(); n != 0 {
		t.Errorf("%d requests are still open", n)
	}
	if len(seen) < 10*engines {
		t.Errorf("only %d series on the page", len(seen))
	}
	for name, values := range seen {
		if len(values) < 2 {
			t.Errorf("%s stands still at %v", name, values)
		}
	}
}

// note keeps a value of a gauge or counter that should move.
func note(seen map[string]map[float64]bool, f *dto.MetricFamily, m *dto.Metric) {
	name := f.GetName()
	if stillness[name] || len(name) > 8 && name[len(name)-8:] == "_created" || f.GetType() == dto.MetricType_HISTOGRAM {
		return
	}
	series := name
	for _, l := range m.GetLabel() {
		switch l.GetName() {
		case "engine":
			series += " " + l.GetValue()
		case "reason", "source", "finished_reason":
			switch l.GetValue() {
			case "external_kv_transfer", "host", "disk", "p2p", "external_unspecified", "abort", "error", "repetition":
				return // reasons and sources that there aren't here
			}
			series += " " + l.GetValue()
		}
	}
	if seen[series] == nil {
		seen[series] = map[float64]bool{}
	}
	seen[series][m.GetGauge().GetValue()+m.GetCounter().GetValue()+m.GetUntyped().GetValue()] = true
}
