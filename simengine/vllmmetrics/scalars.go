package vllmmetrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// scalars are the gauges and counters. They hold no numbers: each page is made
// of one Stats.
type scalars struct {
	exporter *Exporter
	created  float64 // unix time of all counters and histograms
	series   []series

	// The one histogram that the engine counts itself.
	iteration *prometheus.Desc
}

// series is one line of the page.
type series struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*simengine.Stats) float64
}

// describe lists the series of the profile.
func (c *scalars) describe(o Options, labels prometheus.Labels, histograms []string) {
	add := func(kind prometheus.ValueType, name, help string, extra prometheus.Labels, value func(*simengine.Stats) float64) {
		all := prometheus.Labels{}
		for k, v := range labels {
			all[k] = v
		}
		for k, v := range extra {
			all[k] = v
		}
		c.series = append(c.series, series{prometheus.NewDesc(name, help, nil, all), kind, value})
	}
	created := func(name string, extra prometheus.Labels) {
		add(prometheus.GaugeValue, strings.TrimSuffix(name, "_total")+"_created", "Unix time at which the counting began.", extra, c.birth)
	}
	gauge := func(name, help string, extra prometheus.Labels, value func(*simengine.Stats) float64) {
		add(prometheus.GaugeValue, name, help, extra, value)
	}
	counter := func(name, help string, extra prometheus.Labels, value func(*simengine.Stats) uint64) {
		add(prometheus.CounterValue, name, help, extra, func(s *simengine.Stats) float64 { return float64(value(s)) })
		created(name, extra)
	}

	c.gauges(o, gauge)
	c.counters(o, counter)
	for _, name := range histograms {
		// iteration_tokens_total is a histogram, for all that its name says.
		add(prometheus.GaugeValue, name+"_created", "Unix time at which the counting began.", nil, c.birth)
	}
	// These two stand for the process or carry labels of their own.
	info := prometheus.NewDesc("vllm:cache_config_info", "How the KV cache is set up.", nil, o.Cache.labels(o.Profile, o.Engine))
	start := prometheus.NewDesc("process_start_time_seconds", "Unix time at which the process began.", nil, nil)
	c.series = append(c.series,
		series{info, prometheus.GaugeValue, func(*simengine.Stats) float64 { return 1 }},
		series{start, prometheus.GaugeValue, c.birth})
}

func (c *scalars) birth(*simengine.Stats) float64 { return c.created }

type gaugeFunc = func(name, help string, extra prometheus.Labels, value func(*simengine.Stats) float64)

func (c *scalars) gauges(o Options, gauge gaugeFunc) {
	waiting := func(s *simengine.Stats) float64 { return float64(s.Waiting) }
	usage := func(s *simengine.Stats) float64 { return s.KVUsage }
	gauge("vllm:num_requests_running", "Requests in the batch.", nil, func(s *simengine.Stats) float64 { return float64(s.Running) })
	gauge("vllm:num_requests_waiting", "Requests in the queue.", nil, waiting)
	gauge("vllm:kv_cache_usage_perc", "Share of KV blocks that requests hold, 0 to 1.", nil, usage)
	if o.Profile.old() {
		gauge("vllm:gpu_cache_usage_perc", "Former name of vllm:kv_cache_usage_perc.", nil, usage)
		return
	}
	const byReason = "Requests in the queue by what they wait for."
	gauge("vllm:num_requests_waiting_by_reason", byReason, prometheus.Labels{"reason": "capacity"}, waiting)
	gauge("vllm:num_requests_waiting_by_reason", byReason, prometheus.Labels{"reason": "deferred"}, func(*simengine.Stats) float64 { return 0 })
	for level, state := range []string{"awake", "weights_offloaded", "discard_all"} {
		gauge("vllm:engine_sleep_state", "1 for the state that the engine is in.", prometheus.Labels{"sleep_state": state}, func(*simengine.Stats) float64 {
			if int(c.exporter.sleep.Load()) == level {
				return 1
			}
			return 0
		})
	}
}

type counterFunc = func(name, help string, extra prometheus.Labels, value func(*simengine.Stats) uint64)

func (c *scalars) counters(o Options, counter counterFunc) {
	queries := func(s *simengine.Stats) uint64 { return s.PrefixQueries }
	hits := func(s *simengine.Stats) uint64 { return s.PrefixHits }
	none := func(*simengine.Stats) uint64 { return 0 }
	counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.", nil, queries)
	counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.", nil, hits)
	counter("vllm:num_preemptions_total", "Requests sent back to the queue for want of memory.", nil, func(s *simengine.Stats) uint64 { return s.Preemptions })
	counter("vllm:prompt_tokens_total", "Prompt tokens of requests that got their first token.", nil, func(s *simengine.Stats) uint64 { return s.PromptTokens })
	counter("vllm:generation_tokens_total", "Tokens generated.", nil, func(s *simengine.Stats) uint64 { return s.GenerationTokens })

	// A request that its client left counts nowhere.
	ended := map[string]func(*simengine.Stats) uint64{
		simengine.ReasonStop:   func(s *simengine.Stats) uint64 { return s.FinishedStop },
		simengine.ReasonLength: func(s *simengine.Stats) uint64 { return s.FinishedLength },
	}
	for _, reason := range o.Profile.reasons() {
		value := ended[reason]
		if value == nil {
			value = none
		}
		counter("vllm:request_success_total", "Requests that ended, by why they did.", prometheus.Labels{"finished_reason": reason}, value)
	}
	if o.Profile.old() {
		counter("vllm:gpu_prefix_cache_queries_total", "Former name of vllm:prefix_cache_queries.", nil, queries)
		counter("vllm:gpu_prefix_cache_hits_total", "Former name of vllm:prefix_cache_hits.", nil, hits)
		return
	}
	cached := func(s *simengine.Stats) uint64 { return s.PromptTokensCached }
	counter("vllm:prompt_tokens_cached_total", "Prompt tokens that weren't computed.", nil, cached)
	for source, value := range map[string]func(*simengine.Stats) uint64{
		"local_compute":        func(s *simengine.Stats) uint64 { return s.PromptTokens - s.PromptTokensCached },
		"local_cache_hit":      cached,
		"external_kv_transfer": none,
	} {
		counter("vllm:prompt_tokens_by_source_total", "Prompt tokens by where their keys and values came from.", prometheus.Labels{"source": source}, value)
	}
	counter("vllm:mm_cache_queries_total", "Images and the like looked up in their cache.", nil, none)
	counter("vllm:mm_cache_hits_total", "Images and the like found in their cache.", nil, none)
}

// Describe implements prometheus.Collector.
func (c *scalars) Describe(ch chan<- *prometheus.Desc) {
	for _, s := range c.series {
		ch <- s.desc
	}
	ch <- c.iteration
}

// Collect implements prometheus.Collector.
func (c *scalars) Collect(ch chan<- prometheus.Metric) {
	stats := c.exporter.options.Stats()
	for _, s := range c.series {
		ch <- prometheus.MustNewConstMetric(s.desc, s.kind, s.value(&stats))
	}
	ch <- iterations(c.iteration, stats.IterationTokens)
}
