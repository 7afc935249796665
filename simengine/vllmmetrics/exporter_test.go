package vllmmetrics

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
)

var update = flag.Bool("update", false, "write the pages in testdata anew; read the difference before it is committed")

func newExporter(t *testing.T, o Options) *Exporter {
	t.Helper()
	if o.Stats == nil {
		o.Stats = func() simengine.Stats { return simengine.Stats{} }
	}
	e, err := New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return e
}

// some is an engine in the middle of its work.
func some() simengine.Stats {
	s := simengine.Stats{
		Running: 3, Waiting: 2, KVUsage: 0.25,
		PrefixQueries: 4096, PrefixHits: 1024, PromptTokens: 3000, PromptTokensCached: 1000, GenerationTokens: 700,
		Preemptions: 4, FinishedStop: 5, FinishedLength: 6, Aborted: 7, Steps: 800, Evictions: 9,
	}
	s.IterationTokens.Counts[0], s.IterationTokens.Counts[3], s.IterationTokens.Counts[13] = 10, 2, 1
	s.IterationTokens.Sum = 20_100
	return s
}

// sample is what requests brought that ran 1 s in the queue, 0.2 s to the first
// token and then a token each 50 ms.
func sample(e *Exporter) {
	t := simengine.Times{Arrived: 0, Queued: 5e6, Scheduled: 1e9, First: 1.2e9, Previous: -1, At: 1.2e9}
	o := simengine.Output{Tokens: 1, First: true, PromptTokens: 100, CachedTokens: 48, GeneratedTokens: 1, Times: t}
	e.Observe([]simengine.Output{o})
	o.First = false
	for i := range 3 {
		o.Times.Previous = o.Times.At
		o.Times.At += 50 * time.Millisecond
		o.GeneratedTokens++
		o.Finished = i == 2
		o.Reason = simengine.ReasonStop
		e.Observe([]simengine.Output{o})
	}
	e.ObserveParams(1, 256)
	e.Observe([]simengine.Output{{Finished: true, Reason: simengine.ReasonAbort, Times: t}})
	e.ObserveHTTP("/v1/chat/completions", "POST", 200)
	e.ObserveHTTP("", "BREW", 404)
}

func render(t *testing.T, e *Exporter) []byte {
	t.Helper()
	var page bytes.Buffer
	if n, err := e.WriteTo(&page); err != nil || n != int64(page.Len()) {
		t.Fatalf("WriteTo = %d, %v with %d bytes written", n, err, page.Len())
	}
	return page.Bytes()
}

func parse(t *testing.T, page []byte) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		t.Fatalf("parsing the page: %v", err)
	}
	return families
}

// The pages are goldens: names, types, labels and buckets are what others read.
func TestPages(t *testing.T) {
	for _, p := range Profiles() {
		e := newExporter(t, Options{
			Model: "meta-llama/Llama-3.1-8B", Profile: p, Stats: some, Start: time.Unix(1_790_000_000, 0),
			Cache: CacheInfoOf(simengine.Config{}),
		})
		sample(e)
		got := render(t, e)
		file := filepath.Join("testdata", string(p)+".prom")
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("the page of %s is not that of %s; go test -update shows how it differs", p, file)
		}
		parse(t, got)
	}
}

// Which version shows which name is a fact that routers must cope with.
func TestNamesByProfile(t *testing.T) {
	const yes, no = true, false
	for name, in := range map[string][3]bool{ // vllm-0.9, vllm-0.11, main
		"vllm:num_requests_running":                  {yes, yes, yes},
		"vllm:num_requests_waiting":                  {yes, yes, yes},
		"vllm:num_requests_waiting_by_reason":        {no, no, yes},
		"vllm:kv_cache_usage_perc":                   {yes, yes, yes},
		"vllm:gpu_cache_usage_perc":                  {yes, yes, no},
		"vllm:prefix_cache_hits_total":               {yes, yes, yes},
		"vllm:gpu_prefix_cache_hits_total":           {yes, yes, no},
		"vllm:prompt_tokens_by_source_total":         {no, no, yes},
		"vllm:time_per_output_token_seconds":         {yes, yes, no},
		"vllm:inter_token_latency_seconds":           {no, yes, yes},
		"vllm:request_time_per_output_token_seconds": {no, no, yes},
		"vllm:engine_sleep_state":                    {no, no, yes},
		"vllm:iteration_tokens_total":                {yes, yes, yes},
		"vllm:cache_config_info":                     {yes, yes, yes},
	} {
		for i, p := range Profiles() {
			page := render(t, newExporter(t, Options{Profile: p}))
			if got := parse(t, page)[name] != nil; got != in[i] {
				t.Errorf("%s shows %s: %v, want %v", p, name, got, in[i])
			}
			sized := bytes.Contains(page, []byte("kv_cache_size_tokens="))
			if sized != (p == Main) {
				t.Errorf("%s tells the pool's size in tokens: %v", p, sized)
			}
		}
	}
}

// A new engine shows zeros, not nothing: rates need a start.
func TestEverySeriesIsThereFromTheStart(t *testing.T) {
	families := parse(t, render(t, newExporter(t, Options{Model: "m"})))
	reasons := families["vllm:request_success_total"].GetMetric()
	if len(reasons) != 5 {
		t.Errorf("%d reasons to finish, want 5", len(reasons))
	}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			if n := m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount()); n != 0 {
				t.Errorf("%s = %v, want 0", name, n)
			}
		}
	}
}

// A client that leaves is in no counter of ends and in no latency.
func TestAbortLeavesNoTrace(t *testing.T) {
	e := newExporter(t, Options{Stats: func() simengine.Stats { return simengine.Stats{Aborted: 10} }})
	e.Observe([]simengine.Output{{Finished: true, Reason: simengine.ReasonAbort}})
	families := parse(t, render(t, e))
	if got := families["vllm:e2e_request_latency_seconds"].GetMetric()[0].GetHistogram().GetSampleCount(); got != 0 {
		t.Errorf("%d latencies, want 0", got)
	}
	for _, m := range families["vllm:request_success_total"].GetMetric() {
		if m.GetCounter().GetValue() != 0 {
			t.Errorf("an end was counted: %v", m)
		}
	}
}

func TestRestartEmptiesThePage(t *testing.T) {
	e := newExporter(t, Options{Start: time.Unix(100, 0)})
	fresh := render(t, newExporter(t, Options{Start: time.Unix(200, 0)}))
	sample(e)
	e.SetSleep(2)
	if got := parse(t, render(t, e))["vllm:engine_sleep_state"].GetMetric()[1]; got.GetGauge().GetValue() != 1 {
		t.Errorf("sleep state = %v, want discard_all", got)
	}
	e.Restart(time.Unix(200, 0))
	if got := render(t, e); !bytes.Equal(got, fresh) {
		t.Error("the page after Restart is not that of a new process")
	}
}

func TestNewRefuses(t *testing.T) {
	stats := func() simengine.Stats { return simengine.Stats{} }
	for name, o := range map[string]Options{
		"unknown profile": {Profile: "vllm-7", Stats: stats},
		"no stats":        {},
		"model not text":  {Model: "\xff", Stats: stats},
	} {
		if _, err := New(o); err == nil || !strings.HasPrefix(err.Error(), "preparing metrics: ") {
			t.Errorf("%s: New = %v, want an error", name, err)
		}
	}
	newExporter(t, Options{}).ObserveHTTP("\xff", "GET", 1000) // what a client sends never panics
}

// The driver tells of outputs under the lock that its Stats takes; pages read
// meanwhile must neither hang nor differ from the engine.
func TestPageOfARunningEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, err := simengine.New(simengine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var d *live.Driver
		e := newExporter(t, Options{Stats: func() simengine.Stats { return d.Stats() }})
		d = live.New(engine, live.Options{Observe: e.Observe})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); d.Run(ctx) }()
		for range 20 {
			if _, err := d.Generate(ctx, simengine.Request{PromptTokens: 1000, OutputTokens: 100}); err != nil {
				t.Fatal(err)
			}
		}
		for range 50 {
			time.Sleep(50 * time.Millisecond)
			render(t, e)
		}
		families := parse(t, render(t, e))
		if got := families["vllm:generation_tokens_total"].GetMetric()[0].GetCounter().GetValue(); got != 2000 {
			t.Errorf("generation tokens = %v, want 2000", got)
		}
		for name, want := range map[string]uint64{
			"vllm:time_to_first_token_seconds": 20, "vllm:inter_token_latency_seconds": 20 * 99,
			"vllm:e2e_request_latency_seconds": 20, "vllm:iteration_tokens_total": d.Stats().Steps,
		} {
			if got := families[name].GetMetric()[0].GetHistogram().GetSampleCount(); got != want {
				t.Errorf("%s has %d observations, want %d", name, got, want)
			}
		}
		cancel()
		<-done
	})
}
