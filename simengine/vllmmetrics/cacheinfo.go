package vllmmetrics

import (
	"maps"
	"strconv"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// CacheInfo is what vllm:cache_config_info says. Zero fields take vLLM's
// defaults, except the sizes.
type CacheInfo struct {
	BlockSize            int
	Blocks               int
	KVTokens             int
	MaxModelLen          int // 0 leaves kv_cache_max_concurrency at None
	DisablePrefixCaching bool
	CacheDtype           string  // default auto
	HashAlgo             string  // default sha256, before vllm-0.11 builtin
	GPUMemoryUtilization float64 // default 0.92, before main 0.9
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
		if until(V09).has(p) {
			c.HashAlgo = "builtin"
		}
	}
	if c.GPUMemoryUtilization == 0 {
		c.GPUMemoryUtilization = 0.92
		if until(V019).has(p) {
			c.GPUMemoryUtilization = 0.9
		}
	}
	return c
}

// labels are those of the info metric, in Python's spelling: every field of
// vLLM's CacheConfig, and the engine. It has no model_name.
func (c CacheInfo) labels(p Profile, engine string) map[string]string {
	caching := "True"
	if c.DisablePrefixCaching {
		caching = "False"
	}
	labels := map[string]string{
		"block_size":               strconv.Itoa(c.BlockSize),
		"cache_dtype":              c.CacheDtype,
		"enable_prefix_caching":    caching,
		"engine":                   engine,
		"gpu_memory_utilization":   repr(c.GPUMemoryUtilization),
		"is_attention_free":        "False",
		"num_cpu_blocks":           "None",
		"num_gpu_blocks":           strconv.Itoa(c.Blocks),
		"num_gpu_blocks_override":  "None",
		"prefix_caching_hash_algo": c.HashAlgo,
		"sliding_window":           "None",
	}
	for _, more := range cacheFields {
		if more.when.has(p) {
			maps.Copy(labels, more.labels)
		}
	}
	if since(Main).has(p) {
		labels["kv_cache_size_tokens"] = strconv.Itoa(c.KVTokens)
		labels["effective_attention_block_size"] = strconv.Itoa(c.BlockSize)
		labels["kv_cache_max_concurrency"] = "None"
		if c.MaxModelLen > 0 {
			labels["kv_cache_max_concurrency"] = repr(float64(c.KVTokens) / float64(c.MaxModelLen))
		}
	}
	return labels
}

// cacheFields are fields of CacheConfig that came and went, with the values of a
// plain attention model.
var cacheFields = []struct {
	when   span
	labels map[string]string
}{
	{until(V019), map[string]string{"calculate_kv_scales": "False"}},
	{span{V011, V019}, map[string]string{"cpu_kvcache_space_bytes": "None"}},
	{span{V011, V011}, map[string]string{"cpu_offload_gb": "0.0", "swap_space": "4.0", "kv_offloading_backend": "None"}},
	{since(V011), map[string]string{
		"kv_cache_memory_bytes": "None", "kv_offloading_size": "None", "kv_sharing_fast_prefill": "False", "mamba_block_size": "None",
		"mamba_cache_dtype": "auto", "mamba_page_size_padded": "None", "mamba_ssm_cache_dtype": "auto",
	}},
	{since(V019), map[string]string{
		"_block_size_resolved": "True", "kv_cache_dtype_skip_layers": "[]", "kv_offloading_backend": "native", "mamba_cache_mode": "none",
		"user_specified_block_size": "True",
	}},
	{since(Main), map[string]string{
		"cache_hit_alignment_tokens": "None", "enable_mamba_shared_prefix_checkpoint": "False", "hash_block_size": "None",
		"kv_cache_layout": "None", "prefix_cache_retention_interval": "0", "prefix_match_unit": "None", "replayssm_buffer_len": "16",
		"skip_page_size_padded": "None", "swa_bounded_replay": "True", "use_kda_recoverssm": "False", "use_replayssm": "False",
	}},
}
