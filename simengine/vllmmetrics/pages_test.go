package vllmmetrics

import (
	"bytes"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// golden compares a page with a file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".prom")
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
		t.Errorf("the page is not that of %s; go test -update shows how it differs", file)
	}
}

// The pages are goldens: names, types, labels and buckets are what others read.
func TestPages(t *testing.T) {
	for _, p := range Profiles() {
		synctest.Test(t, func(t *testing.T) {
			e := newExporter(t, Options{
				Model: "meta-llama/Llama-3.1-8B", Profile: p, Stats: some, Start: time.Now(),
				Cache: CacheInfoOf(simengine.Config{}),
			})
			time.Sleep(1500 * time.Millisecond) // what a client made is younger than the process
			sample(e)
			got := render(t, e)
			golden(t, string(p), got)
			parse(t, got)
		})
	}
}

// One process shows all its engines.
func TestPageOfDataParallelEnginesWithAdapters(t *testing.T) {
	for _, p := range []Profile{Main, Rust} {
		synctest.Test(t, func(t *testing.T) {
			e := newExporter(t, Options{
				Model: "m", Profile: p, Engines: 2, MaxLoRAs: 4, MaxModelLen: 1000, Start: time.Now(),
				Stats: func(engine int) simengine.Stats {
					s := some(engine)
					s.Running += 10 * engine
					s.RunningAdapters, s.WaitingAdapters = "poems,sql", "sql"
					return s
				},
				Cache: CacheInfoOf(simengine.Config{MaxModelLen: 1000}),
			})
			e.Observer(1)([]simengine.Output{{Tokens: 1, First: true}})
			golden(t, string(p)+"-dp2", render(t, e))
		})
	}
}

// Prometheus's own library reads every page and finds the types. It has no
// parser for OpenMetrics; its text parser then takes counters for untyped, which
// routers must cope with.
func TestPrometheusReadsEveryPage(t *testing.T) {
	for _, p := range Profiles() {
		e := newExporter(t, Options{Model: `a "quoted" \ name`, Profile: p, Stats: some, Engines: 3, MaxLoRAs: 1})
		sample(e)
		page := render(t, e)
		media, params, err := mime.ParseMediaType(e.ContentType())
		want, version := "text/plain", "1.0.0"
		switch p {
		case V08, V09:
			version = "0.0.4"
		case Rust:
			want = "application/openmetrics-text"
		}
		if err != nil || media != want || params["version"] != version || params["charset"] != "utf-8" {
			t.Errorf("%s: content type %q: %v", p, e.ContentType(), err)
		}
		types := map[string]dto.MetricType{}
		for _, f := range must(e.Gather())(t) {
			types[f.GetName()] = f.GetType()
		}
		for name, f := range parse(t, page) {
			want, known := types[name]
			switch {
			case p == Rust && want == dto.MetricType_COUNTER:
				want = dto.MetricType_UNTYPED
				if !bytes.Contains(page, []byte("\n# TYPE "+strings.TrimSuffix(name, "_total")+" counter\n")) {
					t.Errorf("%s: %s isn't declared a counter", p, name)
				}
			case strings.HasSuffix(name, "_created") && !known:
				want, known = dto.MetricType_GAUGE, p != Rust
			}
			if !known || f.GetType() != want {
				t.Errorf("%s: %s is read as %s, want %s", p, name, f.GetType(), want)
			}
			delete(types, name)
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if l.GetName() == "model_name" && l.GetValue() != `a "quoted" \ name` {
						t.Errorf("%s: %s is of model %q", p, name, l.GetValue())
					}
				}
			}
		}
		if len(types) > 0 {
			t.Errorf("%s: not found on the page: %v", p, types)
		}
		if eof := bytes.HasSuffix(page, []byte("\n# EOF\n")); eof != (p == Rust) {
			t.Errorf("%s: ends with EOF: %v", p, eof)
		}
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Which version shows which name is a fact that routers must cope with.
func TestNamesByProfile(t *testing.T) {
	for name, in := range map[string]string{ // one letter for each of Profiles
		"vllm:num_requests_running":                  "xxxxxx",
		"vllm:num_requests_waiting":                  "xxxxxx",
		"vllm:num_requests_waiting_by_reason":        "....xx",
		"vllm:kv_cache_usage_perc":                   ".xxxxx",
		"vllm:gpu_cache_usage_perc":                  "xx....",
		"vllm:prefix_cache_hits_total":               ".xxxxx",
		"vllm:gpu_prefix_cache_hits_total":           "xx....",
		"vllm:external_prefix_cache_hits_total":      "..xxxx",
		"vllm:mm_cache_hits_total":                   "..xxx.",
		"vllm:prompt_tokens_by_source_total":         "...xxx",
		"vllm:time_per_output_token_seconds":         "xxx...",
		"vllm:inter_token_latency_seconds":           "..xxxx",
		"vllm:request_time_per_output_token_seconds": "..xxxx",
		"vllm:request_prefill_kv_computed_tokens":    "...xxx",
		"vllm:engine_sleep_state":                    "..xxx.",
		"vllm:prompt_tokens_recomputed_total":        "...x..",
		"vllm:request_num_preemptions":               "....x.",
		"vllm:estimated_flops_per_gpu_total":         "...xx.",
		"vllm:admission_rejections_total":            "....x.",
		"vllm:iteration_tokens_total":                "xxxxxx",
		"vllm:cache_config_info":                     "xxxxx.",
		"process_start_time_seconds":                 "xxxxx.",
		"vllm:time_to_first_token_seconds_created":   "xxxxx.",
	} {
		for i, p := range Profiles() {
			page := render(t, newExporter(t, Options{Profile: p}))
			if got := parse(t, page)[name] != nil; got != (in[i] == 'x') {
				t.Errorf("%s shows %s: %v", p, name, got)
			}
			sized := bytes.Contains(page, []byte("kv_cache_size_tokens="))
			if sized != (p == Main) {
				t.Errorf("%s tells the pool's size in tokens: %v", p, sized)
			}
		}
	}
}
