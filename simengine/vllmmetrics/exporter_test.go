package vllmmetrics

import (
	"bytes"
	"context"
	"flag"
	"math"
	"strconv"
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
		o.Stats = func(int) simengine.Stats { return simengine.Stats{} }
	}
	e, err := New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return e
}

// some is an engine in the middle of its work.
func some(int) simengine.Stats {
	s := simengine.Stats{
		Running: 3, Waiting: 2, Deferred: 1, KVUsage: 0.25,
		PrefixQueries: 4096, PrefixHits: 1024, PromptTokens: 3000, PromptTokensCached: 1000, GenerationTokens: 700,
		Preemptions: 4, FinishedStop: 5, FinishedLength: 6, Aborted: 7, Steps: 800, Evictions: 9,
	}
	s.IterationTokens.Counts[0], s.IterationTokens.Counts[3], s.IterationTokens.Counts[13] = 10, 2, 1
	s.IterationTokens.Sum = 20_100
	s.IterationComputed.Counts[0], s.IterationComputed.Counts[2], s.IterationComputed.Counts[13] = 10, 2, 1
	s.IterationComputed.Sum = 19_100
	return s
}

// sample is what requests brought that ran 1 s in the queue, 0.2 s to the first
// token and then a token each 50 ms.
func sample(e *Exporter) {
	t := simengine.Times{Arrived: 0, Queued: 5e6, Scheduled: 1e9, First: 1.2e9, Previous: -1, At: 1.2e9}
	o := simengine.Output{Source: &Params{N: 1, MaxTokens: 256}, Tokens: 1, First: true, PromptTokens: 100, CachedTokens: 48, GeneratedTokens: 1, Times: t}
	e.Observer(0)([]simengine.Output{o})
	o.First = false
	for i := range 3 {
		o.Times.Previous = o.Times.At
		o.Times.At += 50 * time.Millisecond
		o.GeneratedTokens++
		o.Finished = i == 2
		o.Reason = simengine.ReasonStop
		e.Observer(0)([]simengine.Output{o})
	}
	e.Observer(0)([]simengine.Output{{Finished: true, Reason: simengine.ReasonAbort, Times: t}})
	e.ObserveHTTP(HTTPAnswer{"/v1/chat/completions", "POST", 200, 300 * time.Millisecond, 120, 0})
	e.ObserveHTTP(HTTPAnswer{"", "BREW", 404, time.Millisecond, -1, 22})
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

// Python's library and the Rust one spell numbers in their own ways.
func TestNumbersAreSpelledAsPythonDoes(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.0", 3: "3.0", 0.25: "0.25", 1e-05: "1e-05", 0.0001: "0.0001", 123456: "123456.0", 1234567: "1.234567e+06",
		1_790_000_000.5: "1.7900000005e+09", 1e6: "1e+06", -2_000_000: "-2000000.0", math.Inf(1): "+Inf", math.Inf(-1): "-Inf", 1e17: "1e+17",
	} {
		if got := pythonFloat(v); got != want {
			t.Errorf("%v is spelled %s, want %s", v, got, want)
		}
	}
	if got := pythonFloat(math.NaN()); got != "NaN" {
		t.Errorf("NaN is spelled %s", got)
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
	e := newExporter(t, Options{Stats: func(int) simengine.Stats { return simengine.Stats{Aborted: 10} }})
	e.Observer(0)([]simengine.Output{{Finished: true, Reason: simengine.ReasonAbort}})
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
	synctest.Test(t, func(t *testing.T) {
		e := newExporter(t, Options{Start: time.Unix(100, 0)})
		sample(e)
		e.SetSleep(2)
		if got := parse(t, render(t, e))["vllm:engine_sleep_state"].GetMetric()[2]; got.GetGauge().GetValue() != 1 {
			t.Errorf("sleep state = %v, want discard_all", got)
		}
		time.Sleep(time.Minute)
		fresh := render(t, newExporter(t, Options{Start: time.Now()}))
		e.Restart(time.Now())
		if got := render(t, e); !bytes.Equal(got, fresh) {
			t.Error("the page after Restart is not that of a new process")
		}
	})
}

// The newest time tells which adapters are at work now; sets that have passed
// stay on the page, and an engine at rest ages.
func TestAdaptersAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stats simengine.Stats
		e := newExporter(t, Options{MaxLoRAs: 2, Stats: func(int) simengine.Stats { return stats }})
		newest := func() (set string, at float64, series int) {
			for _, m := range parse(t, render(t, e))["vllm:lora_requests_info"].GetMetric() {
				series++
				if v := m.GetGauge().GetValue(); v >= at {
					at, set = v, m.GetLabel()[1].GetValue()+"/"+m.GetLabel()[2].GetValue()
				}
			}
			return set, at, series
		}
		if _, _, n := newest(); n != 0 {
			t.Errorf("%d sets before the first step", n)
		}
		begin := float64(time.Now().Unix())
		stats = simengine.Stats{Steps: 1, RunningAdapters: "a", WaitingAdapters: "a,b"}
		if set, at, n := newest(); set != "a/a,b" || at != begin || n != 1 {
			t.Errorf("%s at %v, %d sets", set, at, n)
		}
		time.Sleep(10 * time.Second)
		if _, at, _ := newest(); at != begin {
			t.Errorf("an engine at rest was at work at %v", at)
		}
		stats = simengine.Stats{Steps: 2, RunningAdapters: "b"}
		if set, at, n := newest(); set != "b/" || at != begin+10 || n != 2 {
			t.Errorf("%s at %v, %d sets", set, at, n)
		}
		for i := range 3 * adapterSetsMax {
			stats = simengine.Stats{Steps: uint64(3 + i), RunningAdapters: strconv.Itoa(i)}
			time.Sleep(time.Second)
			if set, _, n := newest(); set != strconv.Itoa(i)+"/" || n > adapterSetsMax {
				t.Fatalf("%s is newest of %d", set, n)
			}
		}
	})
}

func TestNewRefuses(t *testing.T) {
	stats := func(int) simengine.Stats { return simengine.Stats{} }
	for name, o := range map[string]Options{
		"unknown profile": {Profile: "vllm-7", Stats: stats},
		"no stats":        {},
		"no engines":      {Engines: -1, Stats: stats},
		"many engines":    {Engines: EnginesMax + 1, Stats: stats},
		"LoRA slots":      {MaxLoRAs: -1, Stats: stats},
		"model not text":  {Model: "\xff", Stats: stats},
	} {
		if _, err := New(o); err == nil || !strings.HasPrefix(err.Error(), "preparing metrics: ") {
			t.Errorf("%s: New = %v, want an error", name, err)
		}
	}
	newExporter(t, Options{}).ObserveHTTP(HTTPAnswer{Handler: "\xff", Method: "GET", Status: 1000}) // what a client sends never panics
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
		e := newExporter(t, Options{Stats: func(int) simengine.Stats { return d.Stats() }})
		d = live.New(engine, live.Options{Observe: e.Observer(0)})
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
