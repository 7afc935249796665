package vllmmetrics

import (
	"slices"

	dto "github.com/prometheus/client_model/go"
)

// places is the order in which vLLM's page has its families: that in which they
// are made. Former names stand where older versions had them.
var places = []string{
	"process_start_time_seconds",
	"vllm:estimated_flops_per_gpu_total", "vllm:estimated_read_bytes_per_gpu_total", "vllm:estimated_write_bytes_per_gpu_total",
	"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:num_requests_waiting_by_reason", "vllm:engine_sleep_state",
	"vllm:gpu_cache_usage_perc", "vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_hits_total",
	"vllm:kv_cache_usage_perc", "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total",
	"vllm:external_prefix_cache_queries_total", "vllm:external_prefix_cache_hits_total",
	"vllm:mm_cache_queries_total", "vllm:mm_cache_hits_total",
	"vllm:num_preemptions_total", "vllm:prompt_tokens_total", "vllm:prompt_tokens_by_source_total", "vllm:prompt_tokens_cached_total", "vllm:prompt_tokens_recomputed_total",
	"vllm:prompt_tokens_cached_by_source_total", "vllm:generation_tokens_total", "vllm:request_success_total", "vllm:admission_rejections_total",
	"vllm:request_prompt_tokens", "vllm:request_generation_tokens", "vllm:iteration_tokens_total",
	"vllm:request_max_num_generation_tokens", "vllm:request_params_n", "vllm:request_params_max_tokens",
	"vllm:time_to_first_token_seconds", "vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds",
	"vllm:request_time_per_output_token_seconds", "vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds",
	"vllm:request_inference_time_seconds", "vllm:request_prefill_time_seconds", "vllm:request_decode_time_seconds",
	"vllm:request_num_preemptions", "vllm:request_prefill_kv_computed_tokens",
	"vllm:lora_requests_info", "vllm:cache_config_info",
	"http_requests_total", "http_request_size_bytes", "http_response_size_bytes", "http_request_duration_highr_seconds", "http_request_duration_seconds",
}

func byPlace(a, b *dto.MetricFamily) int {
	return slices.Index(places, a.GetName()) - slices.Index(places, b.GetName())
}

// values is the order of the values of a label that isn't that of the alphabet.
var values = map[string][]string{
	"sleep_state":     {"awake", "weights_offloaded", "discard_all"},
	"source":          {"local_compute", "local_cache_hit", "external_kv_transfer", "device", "host", "p2p", "disk", "external_unspecified"},
	"finished_reason": {"stop", "length", "abort", "error", "repetition"},
}

// inMakersOrder sorts the series of a family as vLLM makes them. With several
// engines it goes round the engines for each value.
func inMakersOrder(list []*dto.Metric) []*dto.Metric {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *dto.Metric) int { return place(a) - place(b) })
	return list
}

func place(m *dto.Metric) int {
	for _, l := range m.GetLabel() {
		if order := values[l.GetName()]; order != nil {
			return slices.Index(order, l.GetValue())
		}
	}
	return 0
}
