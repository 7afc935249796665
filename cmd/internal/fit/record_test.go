package fit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// recording makes a recorded run of a simulated engine, so that what Fit should
// find is known.
type recording struct {
	config   simengine.Config
	requests int
	gap      time.Duration // mean time between arrivals
	prompt   int           // mean tokens
	output   int           // mean tokens
	noise    float64       // relative standard deviation of what is left out of the model, per step
	oneClock bool
	replicas int

	meta   func(m map[string]any) // changes meta.json
	remove []string               // files not written
	drop   []string               // fields of requests.jsonl not written
}

// wallClock and bootClock are two clocks a recording may mix.
const (
	wallClock = 1.7e9
	bootClock = 4321.5
)

func (rc recording) load() *Run {
	random := rand.New(rand.NewPCG(7, 7))
	run := &Run{Engine: rc.config, Replicas: max(1, rc.replicas)}
	var at time.Duration
	for i := range rc.requests {
		// A pause in the middle, so that the engine is idle, filling, full and
		// running dry.
		if i == rc.requests/2 {
			at += 40 * rc.gap
		}
		q := Request{
			ID: fmt.Sprint("bench-", i), Arrived: at,
			Prompt: 1 + rc.prompt/4 + int(random.ExpFloat64()*float64(rc.prompt)*3/4),
			Output: 2 + rc.output/2 + random.IntN(rc.output),
		}
		q.Blocks = make([]uint64, q.Prompt/rc.config.BlockSize)
		for j := range q.Blocks {
			q.Blocks[j] = ownBlock(i, j)
		}
		run.Requests = append(run.Requests, q)
		at += time.Duration(random.ExpFloat64() * float64(rc.gap))
	}
	return run
}

// write writes the recording to a folder.
func (rc recording) write(t *testing.T) string {
	t.Helper()
	rc.config = rc.config.WithDefaults()
	run := rc.load()
	tl, err := run.Simulate(rc.config)
	if err != nil {
		t.Fatal(err)
	}
	stretch := rc.stretch(tl)
	dir := t.TempDir()
	put := func(name string, content []byte) {
		for _, r := range rc.remove {
			if r == name {
				return
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var lines bytes.Buffer
	for i, o := range tl.Requests {
		q := run.Requests[i]
		arrived := bootClock + o.Arrived.Seconds()
		if !rc.oneClock {
			arrived += wallClock
		}
		row := map[string]any{
			"request_id": q.ID, "input_toks": q.Prompt, "output_toks": q.Output, "arrival_time": arrived,
			"queued_ts":      bootClock + max(stretch(seen(tl, o)), (o.Arrived+rc.config.Cost.RequestOverhead).Seconds()),
			"scheduled_ts":   bootClock + stretch(o.Scheduled),
			"first_token_ts": bootClock + stretch(o.First),
			"last_token_ts":  bootClock + stretch(o.Last),
		}
		for _, name := range rc.drop {
			delete(row, name)
		}
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	put("requests.jsonl", lines.Bytes())
	put("timeseries.csv", rc.series(tl, stretch))
	meta := map[string]any{
		"model": "example/model", "vllm_version": "0.19.0",
		"engine_kwargs": map[string]any{
			"max_num_seqs": rc.config.MaxNumSeqs, "max_num_batched_tokens": rc.config.MaxNumBatchedTokens,
			"data_parallel_size": max(1, rc.replicas),
		},
		"kv_cache":        map[string]any{"num_gpu_blocks": rc.config.Blocks, "block_size": rc.config.BlockSize},
		"resolved_config": map[string]any{"scheduler_config": map[string]any{"async_scheduling": rc.config.AsyncScheduling}},
	}
	if rc.meta != nil {
		rc.meta(meta)
	}
	b, err := json.Marshal(meta)
	if err != nil {
		t.Fatal(err)
	}
	put("meta.json", b)
	return dir
}

// seen is when the scheduler was handed a request: at the end of the step in
// progress.
func seen(tl *Timeline, o Outcome) time.Duration {
	for _, end := range tl.steps[o.engine].ended {
		if end >= o.Arrived {
			return min(end, o.Scheduled)
		}
	}
	return o.Scheduled
}

// stretch gives each step some more or less time than the model says.
func (rc recording) stretch(tl *Timeline) func(time.Duration) float64 {
	random := rand.New(rand.NewPCG(8, 8))
	off := make([]float64, len(tl.steps[0].ended))
	sum := 0.0
	for i, end := range tl.steps[0].ended {
		if i > 0 && tl.steps[0].began[i] > tl.steps[0].ended[i-1] {
			sum = 0 // who comes to an idle engine is served at once
		}
		sum += random.NormFloat64() * rc.noise * (end - tl.steps[0].began[i]).Seconds()
		off[i] = sum
	}
	return func(at time.Duration) float64 {
		n := 0
		for n < len(off) && tl.steps[0].ended[n] <= at {
			n++
		}
		if n == 0 {
			return at.Seconds()
		}
		return at.Seconds() + off[n-1]
	}
}

// series is timeseries.csv: what the last step of each second showed.
func (rc recording) series(tl *Timeline, stretch func(time.Duration) float64) []byte {
	const begin = 0.37 // of the recorder's clock, before the first arrival
	var b bytes.Buffer
	b.WriteString("t,prompt_throughput,gen_throughput,running,waiting,kv_cache_pct\n")
	s := tl.steps[0]
	for i, end := range s.ended {
		second := int(stretch(end) + begin)
		if i+1 < len(s.ended) && int(stretch(s.ended[i+1])+begin) == second {
			continue
		}
		fmt.Fprintf(&b, "%d.0,0.0,0.0,%d,%d,%.2f\n", second+1, s.shown[i].running, s.shown[i].waiting, 100*s.shown[i].usage)
	}
	return b.Bytes()
}
