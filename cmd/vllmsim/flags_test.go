package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// parsed is the engine that flags make.
func parsed(t *testing.T, args ...string) (options, simengine.Config, error) {
	t.Helper()
	var o options
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.register(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	c, err := o.engine(f)
	return o, c, err
}

func TestFlagsChangeThePreset(t *testing.T) {
	preset, _ := simengine.PresetByName("llama3-70b-tp4-h100")
	preset.Config.AsyncScheduling = true // as the profile's version
	o, c, err := parsed(t, "--preset", "llama3-70b-tp4-h100")
	if err != nil || c != preset.Config || o.model != "llama3-70b" || o.count != 3 || o.listen != "127.0.0.1:9101" {
		t.Errorf("the preset alone: %+v, %+v, %v", o, c, err)
	}
	want := preset.Config
	want.BlockSize, want.Blocks, want.MaxNumSeqs, want.MaxNumBatchedTokens, want.MaxModelLen = 32, 2049, 4, 512, 65_536
	want.Cost = simengine.Cost{Base: 10 * time.Millisecond, PrefillToken: 62.5e-6, RequestOverhead: 40 * time.Millisecond}
	_, c, err = parsed(t, "--preset", "llama3-70b-tp4-h100", "--block-size", "32", "--kv-tokens", "65536", "--max-num-seqs", "4", "--max-num-batched-tokens", "512",
		"--step-base", "10ms", "--request-overhead", "40ms", "--prefill-us-per-token", "62.5", "--decode-us-per-seq", "0", "--context-ns-per-token", "0", "--attention-ns", "0")
	if err != nil || fmt.Sprint(c) != fmt.Sprint(want) {
		t.Errorf("got %+v, %v\nwant %+v", c, err, want)
	}
}

// What llmreplay fit found is a preset like any other.
func TestPresetFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "my-gpu.json")
	const report = `{"engine":{"block_size_tokens":16,"kv_blocks":101,"max_num_seqs":8,"max_num_batched_tokens":256,"max_model_len_tokens":1600,
		"async_scheduling":true,"prefix_caching":true},"coefficients":{"base_ms":12.5,"prefill_us_per_token":80}}`
	if err := os.WriteFile(file, []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
	o, c, err := parsed(t, "--preset", file, "--max-num-seqs", "9", "--async-scheduling=false")
	if err != nil || o.model != "my-gpu" || c.Blocks != 101 || c.MaxNumSeqs != 9 || c.AsyncScheduling || c.Cost.Base != 12500*time.Microsecond {
		t.Errorf("model %q, engine %+v, %v", o.model, c, err)
	}
	if _, c, err := parsed(t, "--preset", file+".json"); err == nil {
		t.Errorf("a file that isn't there gives %+v", c)
	}
}

// Each flag of the API changes what the server answers.
func TestFlagsOfTheAPI(t *testing.T) {
	plain := start(t, "--listen", "127.0.0.1:0", "--count", "1", "--speed", "1000")
	told := start(t, "--listen", "127.0.0.1:0", "--count", "1", "--speed", "1000", "--data-parallel-size", "2", "--dev-mode", "--allow-runtime-lora",
		"--reasoning", "--no-tool-parser", "--adapter", "sql", "--max-loras", "3", "--profile", "vllm-0.19")
	urls := [2]string{}
	for i, p := range []*program{plain, told} {
		urls[i] = p.listening(t, "model=llama3.1-8b preset=llama3.1-8b-h100")
	}
	const tools = `{"messages":[{"role":"user","content":"x"}],"max_tokens":300,"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"tool_choice":"auto"}`
	for _, c := range []struct {
		path, body  string
		plain, told int
	}{
		{"/sleep?level=0", "", 404, 200}, {"/wake_up", "", 404, 200}, {"/reset_prefix_cache", "", 404, 200},
		{"/v1/load_lora_adapter", `{"lora_name":"poems","lora_path":"/p"}`, 404, 200},
		{"/v1/chat/completions", tools, 200, 400},
		{"/v1/completions", `{"prompt":"x","max_tokens":1,"model":"sql"}`, 404, 200},
	} {
		for i, want := range []int{c.plain, c.told} {
			res, err := http.Post(urls[i]+c.path, "application/json", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("%s with %s: %d, want %d: %s", c.path, c.body, res.StatusCode, want, text)
			}
		}
	}
	// Slots bound a batch only where there are adapters.
	if _, c, err := parsed(t, "--adapter", "a,b", "--max-loras", "2"); err != nil || c.MaxLoRAs != 2 {
		t.Errorf("--max-loras 2 = %d, %v", c.MaxLoRAs, err)
	}
	if _, c, err := parsed(t, "--max-loras", "2"); err != nil || c.MaxLoRAs != 0 {
		t.Errorf("--max-loras without adapters = %d, %v, want no bound", c.MaxLoRAs, err)
	}
	if got := get(t, urls[1]+"/version"); got != `{"version":"0.19.1"}` {
		t.Errorf("the version is %s", got)
	}
	page := get(t, urls[1]+"/metrics")
	for _, want := range []string{`vllm:num_requests_running{engine="1",`, `max_lora="3"`, "vllm:prompt_tokens_recomputed_total"} {
		if !strings.Contains(page, want) || strings.Contains(get(t, urls[0]+"/metrics"), want) {
			t.Errorf("%s is not on the page that flags asked for, or on the plain one too", want)
		}
	}
}

func TestTheQueuesOrder(t *testing.T) {
	for policy, want := range map[string]bool{"fcfs": false, "priority": true} {
		if _, c, err := parsed(t, "--scheduling-policy", policy); err != nil || c.PriorityScheduling != want {
			t.Errorf("%s: by priority is %v, %v", policy, c.PriorityScheduling, err)
		}
	}
}

// The scheduler is that of the profile's version, unless flags say otherwise.
func TestTheSchedulerIsThatOfTheVersion(t *testing.T) {
	type scheduler struct{ async, byChunk, alone bool }
	for profile, want := range map[string]scheduler{
		"vllm-0.8": {false, true, true}, "vllm-0.11": {false, true, true}, "vllm-0.19": {true, false, true}, "main": {true, false, false}, "rust": {true, false, false},
	} {
		_, c, err := parsed(t, "--profile", profile, "--long-prefill-token-threshold", "100")
		if got := (scheduler{c.AsyncScheduling, c.AdmitByChunk, c.LongPrefillAlone}); err != nil || got != want || c.LongPrefillTokens != 100 {
			t.Errorf("%s: %+v, %v, want %+v", profile, got, err, want)
		}
	}
	_, c, err := parsed(t, "--async-scheduling=false", "--watermark", "0.02", "--long-prefill-token-threshold-adaptive")
	if err != nil || c.AsyncScheduling || c.Watermark != 0.02 || !c.LongPrefillAdaptive {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestFlagsThatMakeNoSense(t *testing.T) {
	for _, args := range [][]string{
		{"--preset", "x"}, {"--profile", "x"}, {"--count", "0"}, {"--count", "1025"}, {"--speed", "0"}, {"--speed", "NaN"}, {"--speed", "1e7"},
		{"--keep-alive", "0"}, {"--block-size", "0"}, {"--block-size", "5000"}, {"--kv-tokens", "-5"}, {"--kv-tokens", "9000000000000"},
		{"--kv-tokens", "1000", "--max-model-len", "2000"}, {"--max-num-seqs", "-1"}, {"--step-base", "-1s"}, {"--prefill-us-per-token", "-1"},
		{"--prefill-us-per-token", "NaN"}, {"--max-model-len", "1"}, {"--max-num-batched-tokens", "15", "--max-num-seqs", "1"},
		{"--max-num-batched-tokens", "512"}, {"--data-parallel-size", "0"}, {"--data-parallel-size", "65"}, {"--max-loras", "0"},
		{"--scheduling-policy", "lifo"}, {"--watermark", "1"}, {"--watermark", "0.1", "--profile", "vllm-0.19"}, {"--watermark", "NaN"},
		{"--long-prefill-token-threshold", "-1"}, {"--max-num-queued-reqs", "-1"}, {"--max-num-queued-reqs", "1", "--profile", "vllm-0.11"}, {"--long-prefill-token-threshold", "200000"},
		{"--long-prefill-token-threshold-adaptive", "--profile", "vllm-0.11"},
	} {
		if _, c, err := parsed(t, args...); err == nil {
			t.Errorf("%v gives %+v", args, c)
		}
	}
	for _, listen := range []string{"", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:65534"} {
		o := options{listen: listen, count: 3}
		if list, err := o.addresses(); err == nil {
			t.Errorf("--listen %q gives %v", listen, list)
		}
	}
	o := options{listen: "[::1]:9101", count: 2}
	if list, err := o.addresses(); err != nil || fmt.Sprint(list) != "[[::1]:9101 [::1]:9102]" {
		t.Errorf("addresses are %v, %v", list, err)
	}
}

func TestAddressesThatAreOpenToAllArePrintedAsLoopback(t *testing.T) {
	for _, c := range []struct{ ip, want string }{
		{"0.0.0.0", "http://127.0.0.1:80"}, {"::", "http://127.0.0.1:80"}, {"::1", "http://[::1]:80"}, {"10.0.0.1", "http://10.0.0.1:80"},
	} {
		if got := reachable(&net.TCPAddr{IP: net.ParseIP(c.ip), Port: 80}); got != c.want {
			t.Errorf("reachable(%s) = %s, want %s", c.ip, got, c.want)
		}
	}
}
