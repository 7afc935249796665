package vllmmetrics

import (
	"strconv"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// CacheInfo is what vllm:cache_config_info says. Zero fields take vLLM's
// defaults, except the sizes.
type CacheInfo struct {
	BlockSize            int
	Blocks               int
	KVTokens             int
	MaxModelLen          int // 0 leaves kv_cache_max_concurrency out
	DisablePrefixCaching bool
	CacheDtype           string  // default auto
	HashAlgo             string  // default sha256, of vllm-0.9 builtin
	GPUMemoryUtilization float64 // default 0.92, of the older profiles 0.9
}

// CacheInfoOf is the CacheInfo of an engine of this configuration.
func CacheInfoOf(c simengine.Config) CacheInfo {
	c = c.WithDefaults()
	return CacheInfo{
		// vLLM counts the placeholder as capacity: 2588 blocks of 16 are shown
		// as 41408 tokens.
		BlockSize: c.BlockSize, Blocks: c.Blocks, KVTokens: c.Blocks * c.BlockSize, MaxModelLen: c.MaxModelLen,
		DisablePrefixCaching: c.DisablePrefixCaching,
	}
}

func (c CacheInfo) withDefaults(p Profile) CacheInfo {
	if c.CacheDtype == "" {
		c.CacheDtype = "auto"
	}
	if c.HashAlgo == "" {
		c.HashAlgo = "sha256"
		if p == V09 {
			c.HashAlgo = "builtin"
		}
	}
	if c.GPUMemoryUtilization == 0 {
		c.GPUMemoryUtilization = 0.92
		if p.old() {
			c.GPUMemoryUtilization = 0.9
		}
	}
	return c
}

// labels are those of the info metric, in Python's spelling. It has no
// model_name.
func (c CacheInfo) labels(p Profile, engine string) map[string]string {
	caching := "True"
	if c.DisablePrefixCaching {
		caching = "False"
	}
	labels := map[string]string{
		"block_size":               strconv.Itoa(c.BlockSize),
		"cache_dtype":              c.CacheDtype,
		"calculate_kv_scales":      "False",
		"enable_prefix_caching":    caching,
		"engine":                   engine,
		"gpu_memory_utilization":   strconv.FormatFloat(c.GPUMemoryUtilization, 'g', -1, 64),
		"is_attention_free":        "False",
		"num_cpu_blocks":           "None",
		"num_gpu_blocks":           strconv.Itoa(c.Blocks),
		"num_gpu_blocks_override":  "None",
		"prefix_caching_hash_algo": c.HashAlgo,
		"sliding_window":           "None",
	}
	if !p.old() {
		labels["kv_cache_memory_bytes"] = "None"
		labels["kv_cache_size_tokens"] = strconv.Itoa(c.KVTokens)
		if c.MaxModelLen > 0 {
			labels["kv_cache_max_concurrency"] = strconv.FormatFloat(float64(c.KVTokens)/float64(c.MaxModelLen), 'f', 2, 64)
		}
	}
	return labels
}
