package fit

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// three is a run of three requests, and a simulation of it in which the first
// takes a tenth longer, the second a fifth less, and the third is right.
func three() (*Run, *Timeline) {
	at := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
	run := &Run{Model: "a<b", Engine: simengine.Config{BlockSize: 16, Blocks: 100}, Replicas: 1, blocksSource: "recorded"}
	for i, last := range []int{1000, 1000, 2000} {
		run.Requests = append(run.Requests, Request{ID: string(rune('a' + i)), Prompt: 10, Output: 11, First: at(500), Last: at(last), Queued: -1, Scheduled: -1})
	}
	tl := &Timeline{Requests: []Outcome{{First: at(600), Last: at(1100)}, {First: at(400), Last: at(800)}, {First: at(500), Last: at(2000)}}}
	run.Samples = []Sample{{At: at(1000), Running: 3, Waiting: 0, Usage: 0.5}, {At: at(2000), Running: 0, Waiting: -1, Usage: 0}}
	tl.steps = []steps{{
		began: []time.Duration{0, at(900)}, ended: []time.Duration{at(900), at(1900)},
		shown: []shown{{running: 2, waiting: 1, usage: 0.4}, {}},
	}}
	return run, tl
}

func TestReportTellsErrorsByPercentile(t *testing.T) {
	run, tl := three()
	rep := run.Report(run.Engine, tl, nil)
	if got := rep.LatencyMAPE; got < 9.999 || got > 10.001 {
		t.Errorf("latency MAPE is %v %%, want 10: errors of 10, 20 and 0", got)
	}
	if d := rep.TTFT; d.Recorded.P90 != 500 || d.Simulated.P50 != 500 || d.Mean != 0 || d.P90 < 15.9 || d.P90 > 16.1 {
		t.Errorf("TTFT is %+v, want 500 against 400, 500, 600: nothing off in the mean, 16 %% at p90", d)
	}
	if d := rep.TPOT; d.Recorded.P50 != 50 || d.Simulated.P50 != 50 || d.Mean > -3 || d.Mean < -5 {
		t.Errorf("TPOT is %+v, want 50, 50, 150 against 50, 40, 150: -4 %% in the mean", d)
	}
	if c := rep.Curves; c == nil || *c.Running != 0.5 || *c.Waiting != 1 || *c.Usage < 4.9 || *c.Usage > 5.1 {
		t.Errorf("curves are off by %+v, want 1 of 2 samples by 1 running, the one with waiting by 1, and 5 percent points of usage", c)
	}
	if rep = run.Report(run.Engine, tl, func(i int) bool { return i == 2 }); rep.LatencyMAPE != 0 || rep.Judged != 1 || rep.Requests != 3 {
		t.Errorf("judged by the third alone: %+v, want no error", rep)
	}
}

func TestCheckNamesEachBoundMissed(t *testing.T) {
	run, tl := three()
	missed := run.Report(run.Engine, tl, nil).Check(WholeBounds)
	want := []string{"latency is off by 10.00 %, bound 2 %", "TPOT mean is off by -4.00 %, bound 3 %", "TTFT p90", "TTFT p99"}
	for _, w := range want {
		if !strings.Contains(strings.Join(missed, "\n"), w) {
			t.Errorf("missed: %q, want %q among them", missed, w)
		}
	}
	if len(missed) != len(want) {
		t.Errorf("missed: %q, want %d", missed, len(want))
	}
}

func TestReportIsOneJSONObjectAndATable(t *testing.T) {
	run, tl := three()
	run.note("something is missing")
	rep := run.Report(run.Engine, tl, nil)
	var b bytes.Buffer
	if err := rep.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, b.String())
	}
	for _, path := range []string{
		"coefficients.base_ms", "coefficients.prefill_us_per_token", "latency_mape_percent",
		"ttft_ms.mean_error_percent", "ttft_ms.p50_error_percent", "ttft_ms.p90_error_percent", "ttft_ms.p99_error_percent",
		"tpot_ms.mean_error_percent", "tpot_ms.p99_error_percent", "e2e_ms.recorded.p50", "engine.kv_blocks", "curves.running_requests",
	} {
		if meta(got).find(path) == nil {
			t.Errorf("%s is missing in %s", path, b.String())
		}
	}
	b.Reset()
	if err := rep.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 requests, 3 of them judged", "100 blocks of 16 tokens (recorded)", "base ", "mean of the requests' errors: 10.00 %", "TPOT", "note: something is missing"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
}

func TestFigureIsSVGOfBothCurves(t *testing.T) {
	run, tl := three()
	var b bytes.Buffer
	if err := run.Figure(&b, tl); err != nil {
		t.Fatal(err)
	}
	paths := map[string]int{}
	d := xml.NewDecoder(&b)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "path" {
			for _, a := range e.Attr {
				if a.Name.Local == "class" {
					paths[a.Value]++
				}
			}
		}
	}
	// Three panels and the legend.
	if paths["r"] != 4 || paths["c c0"] != 4 {
		t.Errorf("curves are %v, want 4 recorded and 4 simulated", paths)
	}
	run.Samples = nil
	if err := run.Figure(io.Discard, tl); err == nil {
		t.Error("a figure without samples was drawn")
	}
}

// What fit prints can be simulated again.
func TestPresetOfAReport(t *testing.T) {
	rc := recording{
		config: preset(t, "llama3.1-8b-h100", func(c *simengine.Config) {
			c.Blocks, c.MaxNumSeqs, c.Cost.FirstStep = 3000, 17, time.Second
		}),
		requests: 40, gap: 100 * time.Millisecond, prompt: 300, output: 40,
	}
	run := rc.load()
	tl, err := run.Simulate(rc.config)
	if err != nil {
		t.Fatal(err)
	}
	for i := range run.Requests {
		run.Requests[i].First, run.Requests[i].Last = tl.Requests[i].First, tl.Requests[i].Last
	}
	file := filepath.Join(t.TempDir(), "my-gpu.json")
	var b bytes.Buffer
	if err := run.Report(rc.config, tl, nil).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Preset(file)
	if err != nil {
		t.Fatal(err)
	}
	want := rc.config
	want.Cost.FirstStep = 0
	if p.Name != "my-gpu" || published(p.Config.Cost) != published(want.Cost) {
		t.Errorf("preset %s is %+v, want my-gpu, %+v", p.Name, p.Config, want)
	}
	p.Config.Cost, want.Cost = simengine.Cost{}, simengine.Cost{}
	if p.Config != want {
		t.Errorf("engine is %+v, want %+v", p.Config, want)
	}
	if p, err := Preset("llama3-70b-tp8-h100"); err != nil || p.Name != "llama3-70b-tp8-h100" {
		t.Errorf("Preset by name = %+v, %v", p, err)
	}
	for name, content := range map[string]string{"no.json": "", "half.json": `{"engine":{"kv_blocks":5}}`} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := Preset(file); err == nil {
			t.Errorf("Preset(%q) = %+v, want an error", content, p)
		}
	}
	for _, name := range []string{"gpt-9", filepath.Join(t.TempDir(), "none.json")} {
		if _, err := Preset(name); err == nil {
			t.Errorf("Preset(%q) found one", name)
		}
	}
}

// The recording isn't part of the repository: see docs/fidelity.md.
func TestRecordedRunStaysWithinItsBounds(t *testing.T) {
	const dir = "../../../../shared/data/vllm-rtx4090-llama3.1-8b"
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("not run: there is no recording at %s", dir)
	}
	if testing.Short() {
		t.Skip("not run: short")
	}
	_, _, rep := fitted(t, dir)
	if missed := rep.Check(WholeBounds); len(missed) > 0 {
		t.Error(missed)
	}
}
