package main

import (
	"strings"
	"testing"
)

func TestScrubKeepsWhoIsWho(t *testing.T) {
	h := &home{version: "1", root: "/r"}
	got := string(h.scrub([]byte(`{"id":"chatcmpl-0123456789abcdef0123456789abcdef","created":1796030498,"root":"/r/model"}
{"id":"chatcmpl-0123456789abcdef0123456789abcdef","tool":"chatcmpl-tool-00000000000000aa"}
{"id":"chatcmpl-ffffffffffffffffffffffffffffffff","created_at": 1796030498.5,"n":1796030498}
File "/r/1/lib/x.py", at 2026-11-30T09:00:00Z`)))
	want := `{"id":"chatcmpl-1","created":0,"root":"/model"}
{"id":"chatcmpl-1","tool":"chatcmpl-tool-2"}
{"id":"chatcmpl-3","created_at": 0,"n":1796030498}
File "/venv/lib/x.py", at 1970-01-01T00:00:00Z`
	if got != want {
		t.Errorf("scrub =\n%s\nwant\n%s", got, want)
	}
}

func TestScrubbedPagesKeepCountsButNoTimes(t *testing.T) {
	h := &home{version: "1", root: "/r"}
	got := string(h.scrubMetrics([]byte(`# TYPE vllm:x_seconds histogram
vllm:x_seconds_bucket{le="0.5"} 3.0
vllm:x_seconds_bucket{le="+Inf"} 4.0
vllm:x_seconds_count 4.0
vllm:x_seconds_sum 9.5
vllm:prompt_tokens_total{engine="0"} 166.0
vllm:prompt_tokens_created{engine="0"} 1.796e+09
process_cpu_seconds_total 77.0
`)))
	want := `# TYPE vllm:x_seconds histogram
vllm:x_seconds_bucket{le="0.5"} 0.0
vllm:x_seconds_bucket{le="+Inf"} 4.0
vllm:x_seconds_count 4.0
vllm:x_seconds_sum 0.0
vllm:prompt_tokens_total{engine="0"} 166.0
vllm:prompt_tokens_created{engine="0"} 1.7e+09
process_cpu_seconds_total 0.0
`
	if got != want {
		t.Errorf("scrubMetrics =\n%s\nwant\n%s", got, want)
	}
}

func TestGaugesAreReadUnderOldAndNewNames(t *testing.T) {
	for _, names := range []string{"gpu", "kv"} {
		page := "vllm:num_requests_running{engine=\"0\"} 1.0\nvllm:num_requests_running{engine=\"1\"} 2.0\n" +
			"vllm:request_success_total{finished_reason=\"stop\"} 5.0\n"
		if names == "gpu" {
			page += "vllm:gpu_cache_usage_perc 0.25\nvllm:gpu_prefix_cache_hits_total 32.0\n"
		} else {
			page += "vllm:kv_cache_usage_perc 0.25\nvllm:prefix_cache_hits_total 32.0\n"
		}
		g := readGauges(page)
		if g.Running != 3 || g.KV != 0.25 || !g.KVInUse || g.Hits != 32 || g.Finished["stop"] != 5 || g.finished() != 5 {
			t.Errorf("%s: %+v", names, g)
		}
	}
}

func TestBoundsAreJudged(t *testing.T) {
	ratio := func(policy string, r float64) outcome {
		o := outcome{}
		o.Policy, o.CachedTokenRatio, o.Requests = policy, &r, 10
		return o
	}
	number := func(f float64) *float64 { return &f }
	good := func() []outcome {
		all := []outcome{ratio(pinned, 0.9), ratio(ours, 0.88), ratio("round_robin", 0.7), ratio("least_conn", 0.8), ratio(killed, 0.85)}
		all[1].Predicted, all[1].Cached = number(98), number(100)
		all[4].Failed, all[4].Waiting = 2, 1
		return all
	}
	for name, c := range map[string]struct {
		change func([]outcome)
		missed string
	}{
		"all hold":               {func([]outcome) {}, ""},
		"far below pinned":       {func(o []outcome) { *o[1].CachedTokenRatio = 0.85 }, "1 bounds are missed"},
		"no better than a rival": {func(o []outcome) { *o[3].CachedTokenRatio = 0.88 }, "1 bounds are missed"},
		"predicted too much":     {func(o []outcome) { *o[1].Predicted = 106 }, "1 bounds are missed"},
		"a request failed":       {func(o []outcome) { o[2].Failed = 1 }, "1 bounds are missed"},
		"lost before an answer":  {func(o []outcome) { o[4].Lost = 1 }, "1 bounds are missed"},
		"killed in idleness":     {func(o []outcome) { o[4].Waiting = 0 }, "1 bounds are missed"},
		"nothing told":           {func(o []outcome) { o[2].CachedTokenRatio = nil }, "no cached tokens"},
	} {
		outcomes := good()
		c.change(outcomes)
		var out strings.Builder
		err := judge(&out, outcomes, false)
		if c.missed == "" && err != nil || c.missed != "" && (err == nil || !strings.Contains(err.Error(), c.missed)) {
			t.Errorf("%s: judge = %v, want %q\n%s", name, err, c.missed, &out)
		}
	}
}
