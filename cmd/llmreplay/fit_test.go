package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/fit"
)

// record writes a run in which each request is served alone, one after the
// other: a step of 10 ms, and 0.1 ms for each token of the prompt. The last
// takes slower of both.
func record(t *testing.T, slower float64) string {
	t.Helper()
	dir := t.TempDir()
	var lines strings.Builder
	at := 100.0
	for i := range 20 {
		prompt, output, times := 100+50*i, 20+i, 1.0
		if i >= 10 {
			times = slower
		}
		first := at + times*(0.010+1e-4*float64(prompt))
		last := first + times*0.010*float64(output-1)
		fmt.Fprintf(&lines, `{"request_id":"%d","input_toks":%d,"output_toks":%d,"arrival_time":%f,"queued_ts":%f,"scheduled_ts":%f,"first_token_ts":%f,"last_token_ts":%f}`+"\n",
			i, prompt, output, at, at, at, first, last)
		at = last + 1
	}
	meta := `{"vllm_version":"0.19.0","model":"m","engine_kwargs":{"max_num_seqs":8,"max_num_batched_tokens":4096},"kv_cache":{"num_gpu_blocks":500,"block_size":16},
		"resolved_config":{"scheduler_config":{"async_scheduling":false}}}`
	for name, content := range map[string]string{
		"requests.jsonl": lines.String(), "meta.json": meta, "timeseries.csv": "t,running,waiting,kv_cache_pct\n1.0,1,0,5.01\n2.0,1,0,7.01\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFitPrintsTheCoefficientsAndTheirErrors(t *testing.T) {
	figure := filepath.Join(t.TempDir(), "curves.svg")
	out, err := runReplay(t, "fit", "--run", record(t, 1), "--check", "--json", "--figure", figure)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var rep fit.Report
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	c := rep.Coefficients
	if c.Base < 9.8 || c.Base > 10.2 || c.PrefillToken < 95 || c.PrefillToken > 105 || rep.Requests != 20 || rep.Judged != 20 {
		t.Errorf("fit found %+v for %d of %d requests, want 10 ms and 100 us a token for all", c, rep.Judged, rep.Requests)
	}
	if svg, err := os.ReadFile(figure); err != nil || !strings.HasPrefix(string(svg), "<svg") {
		t.Errorf("the figure is %.20q, %v", svg, err)
	}
}

// A GPU that slows down half-way is nothing that the first half tells.
func TestFitFailsPastItsBounds(t *testing.T) {
	out, err := runReplay(t, "fit", "--run", record(t, 1.2), "--check", "--split", "half")
	if err == nil || !strings.Contains(err.Error(), "missed: latency is off by") {
		t.Errorf("fit --check = %v, want the bounds missed\n%s", err, out)
	}
	if !strings.Contains(out, "20 requests, 10 of them judged") {
		t.Errorf("fit --split half printed %q, want it judged by the second half", out)
	}
	if out, err := runReplay(t, "fit", "--run", record(t, 1.2), "--split", "half"); err != nil {
		t.Errorf("without --check: %v\n%s", err, out)
	}
}

func TestFitRefusesWhatItCannotDo(t *testing.T) {
	dir := record(t, 1)
	for _, args := range [][]string{
		{"fit"},
		{"fit", "--run", t.TempDir()},
		{"fit", "--run", dir, "--split", "third"},
		{"fit", "--run", dir, "--figure", filepath.Join(dir, "none", "curves.svg")},
	} {
		if out, err := runReplay(t, args...); err == nil {
			t.Errorf("llmreplay %s = %q, want an error", strings.Join(args, " "), out)
		}
	}
}
