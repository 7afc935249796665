package fit

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const oneRequest = `{"request_id":"a","input_toks":40,"output_toks":3,"arrival_time":1.0,"queued_ts":1.01,"scheduled_ts":1.02,"first_token_ts":1.5,"last_token_ts":1.7}` + "\n"

func TestReadNamesWhatIsMissing(t *testing.T) {
	without := func(names ...string) string {
		s := oneRequest
		for _, n := range names {
			s = strings.Replace(s, `"`+n+`"`, `"x"`, 1)
		}
		return s
	}
	for name, x := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no folder":        {nil, "requests.jsonl"},
		"empty":            {map[string]string{"requests.jsonl": "\n"}, "no requests"},
		"not JSON":         {map[string]string{"requests.jsonl": oneRequest + "{\n"}, "requests.jsonl: line 2"},
		"no first token":   {map[string]string{"requests.jsonl": without("first_token_ts")}, "no request has first_token_ts"},
		"no lengths":       {map[string]string{"requests.jsonl": without("input_toks", "output_toks")}, "no request has input_toks, output_toks"},
		"no arrival":       {map[string]string{"requests.jsonl": without("arrival_time", "queued_ts")}, "arrival_time and queued_ts"},
		"clocks apart":     {map[string]string{"requests.jsonl": strings.Replace(without("queued_ts"), `:1.0`, `:1.7e9`, 1)}, "queued_ts is missing"},
		"all null":         {map[string]string{"requests.jsonl": strings.NewReplacer("1.5", "null", "1.7", "null").Replace(oneRequest) + strings.Replace(oneRequest, "40", "0", 1)}, "no request is complete"},
		"token before all": {map[string]string{"requests.jsonl": strings.Replace(oneRequest, "1.5", "0.5", 1)}, "request a arrives at"},
		"broken meta":      {map[string]string{"requests.jsonl": oneRequest, "meta.json": "[]"}, "meta.json"},
		"mad meta":         {map[string]string{"requests.jsonl": oneRequest, "meta.json": `{"engine_kwargs":{"max_num_seqs":1e30}}`}, "max_num_seqs"},
		"many engines":     {map[string]string{"requests.jsonl": oneRequest, "meta.json": `{"engine_kwargs":{"data_parallel_size":1000}}`}, "data_parallel_size"},
		"endless prompts":  {map[string]string{"requests.jsonl": strings.Replace(oneRequest, "40", "1e9", 1), "meta.json": `{"kv_cache":{"block_size":1}}`}, "blocks in all prompts"},
		"broken series":    {map[string]string{"requests.jsonl": oneRequest, "timeseries.csv": "t,running\nx,1\n"}, "timeseries.csv: line 2"},
		"broken gzip":      {map[string]string{"requests.jsonl": oneRequest, "workload_tokens.jsonl.gz": "no"}, "workload_tokens.jsonl.gz"},
	} {
		_, err := Read(folder(t, x.files))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: Read() = %v, want an error with %q", name, err, x.want)
		}
	}
}

// Requests that never got a token are null in the recording.
func TestReadLeavesOutRequestsThatNeverEnded(t *testing.T) {
	lost := `{"request_id":"lost","input_toks":40,"output_toks":3,"arrival_time":null,"queued_ts":null,"scheduled_ts":null,"first_token_ts":null,"last_token_ts":null}`
	run, err := Read(folder(t, map[string]string{"requests.jsonl": lost + "\n" + oneRequest}))
	if err != nil || len(run.Requests) != 1 || run.Requests[0].ID != "a" {
		t.Fatalf("Read() = %+v, %v, want one request", run, err)
	}
	if !slices.ContainsFunc(run.Notes, func(n string) bool { return strings.HasPrefix(n, "1 of 2 requests") }) {
		t.Errorf("notes are %q, want one on the request left out", run.Notes)
	}
}

// Older recordings have no kv_cache and resolved_config, newer ones write {} if
// vLLM wouldn't tell; numbers may be strings, and unknown keys be there.
func TestReadTakesMetaAsItComes(t *testing.T) {
	type want struct {
		blocks, size, batched, seqs int
		async, cold, byChunk        bool
	}
	for meta, w := range map[string]want{
		`{}`: {0, 16, 2048, 256, true, false, false},
		`{"vllm_version":"0.11.2","kv_cache":{},"resolved_config":{},"engine_kwargs":{"max_num_seqs":64,"max_num_batched_tokens":512,"max_model_len":null}}`:                                                  {0, 16, 512, 64, false, false, true},
		`{"vllm_version":"0.20.0.dev3+g1234","resolved_config":{"scheduler_config":{"max_num_seqs":9,"async_scheduling":false},"cache_config":{"block_size":"32","num_gpu_blocks":700}}}`:                     {700, 32, 2048, 9, false, false, false},
		`{"vllm_version":"0.19.0","kv_cache":{"num_gpu_blocks":null,"num_kv_tokens":1600,"enable_prefix_caching":false},"hardware":{"device_total_memory_bytes":85e9,"device_name":"NVIDIA H100 80GB HBM3"}}`: {100, 16, 8192, 1024, true, true, false},
		`{"vllm_version":"0.19.0","hardware":{"device_total_memory_bytes":85e9,"device_name":"NVIDIA A100-SXM4-80GB"},"resolved_config":{"scheduler_config":"<SchedulerConfig>"}}`:                            {0, 16, 2048, 256, true, false, false},
		`{"vllm_version":"0.19.0","hardware":{"device_total_memory_bytes":190e9,"device_name":"NVIDIA B200"}}`:                                                                                                {0, 16, 16384, 1024, true, false, false},
	} {
		run, err := Read(folder(t, map[string]string{"requests.jsonl": oneRequest, "meta.json": meta}))
		if err != nil {
			t.Errorf("%s: %v", meta, err)
			continue
		}
		c := run.Engine
		if got := (want{c.Blocks, c.BlockSize, c.MaxNumBatchedTokens, c.MaxNumSeqs, c.AsyncScheduling, c.DisablePrefixCaching, c.AdmitByChunk}); got != w {
			t.Errorf("%s: engine is %+v, want %+v", meta, got, w)
		}
	}
}

func TestReadTakesSeriesAsTheyCome(t *testing.T) {
	run, err := Read(folder(t, map[string]string{
		"requests.jsonl": oneRequest,
		"timeseries.csv": "\ufefft, waiting,preempted,kv_cache_pct,running\r\n2.0,1,0,0.0,3\r\n1.0,,0,0.0,2\r\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := []Sample{{At: time.Second, Running: 2, Waiting: -1, Usage: -1}, {At: 2 * time.Second, Running: 3, Waiting: 1, Usage: -1}}
	if !slices.Equal(run.Samples, want) {
		t.Errorf("samples are %+v, want %+v: by name, in order, and no usage that is 0 throughout", run.Samples, want)
	}
}

// Equal prefixes have equal blocks, up to the first token that differs.
func TestReadTellsPrefixesFromTokens(t *testing.T) {
	list := func(n, last int) string {
		var s []string
		for i := range n {
			s = append(s, fmt.Sprint(i))
		}
		s[n-1] = fmt.Sprint(last)
		return `{"input_tok_ids":[` + strings.Join(s, ",") + `]}` + "\n"
	}
	second := strings.NewReplacer(`"a"`, `"b"`, "1.0,", "1.2,").Replace(oneRequest)
	third := strings.NewReplacer(`"a"`, `"c"`, "1.0,", "1.3,", "40", "41").Replace(oneRequest)
	var gz bytes.Buffer
	z := gzip.NewWriter(&gz)
	// 16 tokens a block: the second differs in its second block, the third has
	// another length than was recorded.
	fmt.Fprint(z, list(40, 7), strings.Replace(list(40, 7), ",31,", ",99,", 1), list(40, 7))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	run, err := Read(folder(t, map[string]string{"requests.jsonl": oneRequest + second + third, "workload_tokens.jsonl.gz": gz.String()}))
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := run.Requests[0].Blocks, run.Requests[1].Blocks, run.Requests[2].Blocks
	if len(a) != 2 || a[0] != b[0] || a[1] == b[1] || len(c) != 2 || c[0] == a[0] {
		t.Errorf("blocks are %x, %x, %x, want the first two to share their first", a, b, c)
	}
	if !slices.ContainsFunc(run.Notes, func(n string) bool { return strings.HasPrefix(n, "1 requests have other prompts") }) {
		t.Errorf("notes are %q, want one on the prompt of another length", run.Notes)
	}
}

// A recording of anything is read or refused, and what is read can be simulated.
func FuzzRead(f *testing.F) {
	f.Add(oneRequest, "t,running,waiting,kv_cache_pct\n1.0,1,0,3.5\n", `{"kv_cache":{"num_gpu_blocks":50}}`, `{"input_tok_ids":[1,2,3]}`)
	f.Add(strings.Replace(oneRequest, "1.0,", "1.7e9,", 1), "t\n1\n2\n", `{"engine_kwargs":{"max_num_seqs":"8"}}`, "")
	f.Fuzz(func(t *testing.T, requests, series, meta, tokens string) {
		run, err := Read(folder(t, map[string]string{
			"requests.jsonl": requests, "timeseries.csv": series, "meta.json": meta, "workload_tokens.jsonl": tokens,
		}))
		if err != nil {
			return
		}
		total := 0
		for i := range run.Requests {
			total += run.Requests[i].Prompt + run.Requests[i].Output
		}
		if total > 500 {
			return
		}
		if c, tl, err := run.Fit(Options{}); err == nil {
			rep := run.Report(c, tl, nil)
			if err := rep.WriteText(&bytes.Buffer{}); err != nil {
				t.Fatal(err)
			}
			if err := rep.WriteJSON(&bytes.Buffer{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
