package fit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// meta is meta.json, of which any part may be missing.
type meta map[string]any

func readMeta(dir string) (meta, error) {
	m := meta{}
	b, err := os.ReadFile(filepath.Join(dir, "meta.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("reading meta.json: %w", err)
	}
	return m, nil
}

// find returns the value at the first of the dotted paths where there is one.
func (m meta) find(paths ...string) any {
	for _, path := range paths {
		var at any = map[string]any(m)
		for key := range strings.SplitSeq(path, ".") {
			o, _ := at.(map[string]any)
			at = o[key]
		}
		if at != nil {
			return at
		}
	}
	return nil
}

// text is the string at the first of the paths, or "".
func (m meta) text(paths ...string) string {
	s, _ := m.find(paths...).(string)
	return s
}

// number is the number at the first of the paths that has one above 0. Versions
// of vLLM write some of them as strings.
func (m meta) number(paths ...string) (float64, bool) {
	for _, path := range paths {
		var x float64
		switch v := m.find(path).(type) {
		case float64:
			x = v
		case string:
			x, _ = strconv.ParseFloat(v, 64)
		}
		if x > 0 {
			return x, true
		}
	}
	return 0, false
}

// flag is the truth value at the first of the paths that has one.
func (m meta) flag(otherwise bool, paths ...string) bool {
	for _, path := range paths {
		if v, ok := m.find(path).(bool); ok {
			return v
		}
	}
	return otherwise
}

// engine is the configuration of the recorded engine. Blocks is 0 where it isn't
// recorded. It notes what it had to assume.
func (m meta) engine(note func(format string, args ...any)) (simengine.Config, error) {
	c := simengine.Config{
		AsyncScheduling: m.since(14, "async_scheduling", note),
		AdmitByChunk:    !m.since(19, "scheduler_reserve_full_isl", note),
	}
	budget, seqs := m.stepDefaults()
	for _, f := range []struct {
		to        *int
		what      string
		otherwise int
		paths     []string
	}{
		{&c.BlockSize, "block_size", simengine.DefaultBlockSize, []string{"kv_cache.block_size", "resolved_config.cache_config.block_size", "engine_kwargs.block_size"}},
		{&c.MaxNumBatchedTokens, "max_num_batched_tokens", budget, []string{"resolved_config.scheduler_config.max_num_batched_tokens", "engine_kwargs.max_num_batched_tokens"}},
		{&c.MaxNumSeqs, "max_num_seqs", seqs, []string{"resolved_config.scheduler_config.max_num_seqs", "engine_kwargs.max_num_seqs"}},
		{&c.MaxModelLen, "max_model_len", 0, []string{"resolved_config.model_config.max_model_len", "engine_kwargs.max_model_len"}},
		{&c.Blocks, "num_gpu_blocks", 0, []string{
			"kv_cache.num_gpu_blocks", "resolved_config.cache_config.num_gpu_blocks",
			"resolved_config.cache_config.num_gpu_blocks_override", "engine_kwargs.num_gpu_blocks_override",
		}},
	} {
		x, ok := m.number(f.paths...)
		switch {
		case ok && x > simengine.MaxTokens:
			return c, fmt.Errorf("reading meta.json: %s is %v, want at most %d", f.what, x, simengine.MaxTokens)
		case ok:
			*f.to = int(x)
		case f.otherwise > 0:
			*f.to = f.otherwise
			note("meta.json has no %s; taken as %d", f.what, f.otherwise)
		}
	}
	if c.Blocks == 0 {
		if tokens, ok := m.number("kv_cache.num_kv_tokens"); ok {
			c.Blocks = int(tokens) / c.BlockSize
		}
	}
	c.DisablePrefixCaching = !m.flag(true, "kv_cache.enable_prefix_caching", "resolved_config.cache_config.enable_prefix_caching", "engine_kwargs.enable_prefix_caching")
	if p := m.text("resolved_config.scheduler_config.policy"); p != "" && p != "fcfs" {
		note("scheduling policy %s: priorities aren't recorded, simulated as fcfs", p)
	}
	if m.find("resolved_config.speculative_config") != nil {
		note("speculative decoding isn't modelled: its gain is taken for cheaper steps")
	}
	if n, _ := m.number("resolved_config.parallel_config.pipeline_parallel_size", "engine_kwargs.pipeline_parallel_size"); n > 1 {
		note("pipeline parallelism isn't modelled: steps are taken to follow each other")
	}
	return c, nil
}

// since is a switch of the scheduler that is on by default since vLLM 0.minor.
func (m meta) since(minor int, name string, note func(string, ...any)) bool {
	if v, ok := m.find("resolved_config.scheduler_config."+name, "engine_kwargs."+name).(bool); ok {
		return v
	}
	version := m.text("vllm_version")
	var x, y int
	if _, err := fmt.Sscanf(version, "%d.%d", &x, &y); err != nil {
		note("meta.json has neither %s nor a vllm_version; taken as on", name)
		return true
	}
	on := x > 0 || y >= minor
	note("meta.json has no %s; vLLM %s has it %s by default", name, version, map[bool]string{true: "on", false: "off"}[on])
	return on
}

// stepDefaults are vLLM's max_num_batched_tokens and max_num_seqs for a GPU of
// the recorded size: 8192 and 1024 from 70 GiB on, but for the A100; 16384 and
// 1024 from 160 GiB on; else 2048 and 256.
func (m meta) stepDefaults() (budget, seqs int) {
	bytes, _ := m.number("hardware.device_total_memory_bytes")
	switch gib := bytes / (1 << 30); {
	case gib >= 160:
		return 16384, 1024
	case gib >= 70 && !strings.Contains(m.text("hardware.device_name"), "A100"):
		return 8192, 1024
	}
	return 2048, 256
}
