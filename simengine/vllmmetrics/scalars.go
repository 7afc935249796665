package vllmmetrics

import (
	"maps"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// scalars are the gauges and counters of one engine. They hold no numbers: each
// page is made of one Stats.
type scalars struct {
	profile Profile
	labels  prometheus.Labels // model_name and engine
	stats   func() simengine.Stats
	start   time.Time // of all counters and histograms
	sleep   *atomic.Int32
	series  []series

	// The one histogram that the engine counts itself.
	iteration *prometheus.Desc
}

// series is one line of the page.
type series struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*simengine.Stats) float64
}

// metric appends series of one name, if the profile shows it.
type metric struct {
	to         *scalars
	kind       prometheus.ValueType
	name, help string
	hidden     bool
}

func (c *scalars) gauge(when span, name, help string) metric {
	return metric{c, prometheus.GaugeValue, name, help, !when.has(c.profile)}
}

func (c *scalars) counter(when span, name, help string) metric {
	return metric{c, prometheus.CounterValue, name, help, !when.has(c.profile)}
}

func (m metric) is(value func(*simengine.Stats) float64) { m.add(m.to.labels, value) }

// with is one of several series that differ in a label.
func (m metric) with(label, is string, value func(*simengine.Stats) float64) {
	all := maps.Clone(m.to.labels)
	all[label] = is
	m.add(all, value)
}

func (m metric) add(labels prometheus.Labels, value func(*simengine.Stats) float64) {
	if !m.hidden {
		m.to.series = append(m.to.series, series{prometheus.NewDesc(m.name, m.help, nil, labels), m.kind, value})
	}
}

// count reads a counter.
func count(of func(*simengine.Stats) uint64) func(*simengine.Stats) float64 {
	return func(s *simengine.Stats) float64 { return float64(of(s)) }
}

func none(*simengine.Stats) float64 { return 0 }

// describe lists the series of the profile.
func (c *scalars) describe(cache map[string]string) {
	c.gauges()
	c.cacheCounters()
	c.tokenCounters()
	c.requestCounters()
	c.estimates()
	if always.python().has(c.profile) {
		// It has labels of its own, and no model_name.
		info := prometheus.NewDesc("vllm:cache_config_info", "How the KV cache is set up.", nil, cache)
		c.series = append(c.series, series{info, prometheus.GaugeValue, func(*simengine.Stats) float64 { return 1 }})
	}
}

func (c *scalars) gauges() {
	waiting := func(s *simengine.Stats) float64 { return float64(s.Waiting) }
	usage := func(s *simengine.Stats) float64 { return s.KVUsage }
	c.gauge(always, "vllm:num_requests_running", "Requests in the batch.").
		is(func(s *simengine.Stats) float64 { return float64(s.Running) })
	c.gauge(always, "vllm:num_requests_waiting", "Requests in the queue.").is(waiting)
	reason := c.gauge(since(Main), "vllm:num_requests_waiting_by_reason", "Requests in the queue by what they wait for.")
	reason.with("reason", "capacity", func(s *simengine.Stats) float64 { return float64(s.Waiting - s.Deferred) })
	reason.with("reason", "deferred", func(s *simengine.Stats) float64 { return float64(s.Deferred) })
	c.gauge(since(V09), "vllm:kv_cache_usage_perc", "Share of KV blocks that requests hold, 0 to 1.").is(usage)
	c.gauge(until(V09), "vllm:gpu_cache_usage_perc", "Share of KV blocks that requests hold, 0 to 1; the former name.").is(usage)
	asleep := c.gauge(since(V011).python(), "vllm:engine_sleep_state", "1 for the state that the engine is in.")
	for level, state := range []string{"awake", "weights_offloaded", "discard_all"} {
		asleep.with("sleep_state", state, func(*simengine.Stats) float64 {
			if int(c.sleep.Load()) == level {
				return 1
			}
			return 0
		})
	}
}

func (c *scalars) cacheCounters() {
	queries := count(func(s *simengine.Stats) uint64 { return s.PrefixQueries })
	hits := count(func(s *simengine.Stats) uint64 { return s.PrefixHits })
	c.counter(since(V09), "vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.").is(queries)
	c.counter(since(V09), "vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.").is(hits)
	c.counter(until(V09), "vllm:gpu_prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache; the former name.").is(queries)
	c.counter(until(V09), "vllm:gpu_prefix_cache_hits_total", "Prompt tokens found in the prefix cache; the former name.").is(hits)
	c.counter(since(V011), "vllm:external_prefix_cache_queries_total", "Prompt tokens looked up in the cache of a KV connector.").is(none)
	c.counter(since(V011), "vllm:external_prefix_cache_hits_total", "Prompt tokens found in the cache of a KV connector.").is(none)
	c.counter(since(V011).python(), "vllm:mm_cache_queries_total", "Images and the like looked up in their cache.").is(none)
	c.counter(since(V011).python(), "vllm:mm_cache_hits_total", "Images and the like found in their cache.").is(none)
	tier := c.counter(since(Main).python(), "vllm:prompt_tokens_cached_by_source_total", "Prompt tokens found in a cache, by where it lies.")
	tier.with("source", "device", hits)
	for _, source := range []string{"host", "p2p", "disk", "external_unspecified"} {
		tier.with("source", source, none)
	}
}

func (c *scalars) tokenCounters() {
	cached := count(func(s *simengine.Stats) uint64 { return s.PromptTokensCached })
	c.counter(always, "vllm:prompt_tokens_total", "Prompt tokens of requests that got their first token.").
		is(count(func(s *simengine.Stats) uint64 { return s.PromptTokens }))
	source := c.counter(since(V019), "vllm:prompt_tokens_by_source_total", "Prompt tokens by where their keys and values came from.")
	source.with("source", "local_compute", count(func(s *simengine.Stats) uint64 { return s.PromptTokens - s.PromptTokensCached }))
	source.with("source", "local_cache_hit", cached)
	source.with("source", "external_kv_transfer", none)
	c.counter(since(V019), "vllm:prompt_tokens_cached_total", "Prompt tokens that weren't computed.").is(cached)
	c.counter(span{V019, V019}, "vllm:prompt_tokens_recomputed_total", "Prompt tokens that were computed though all were cached.").is(none)
	c.counter(always, "vllm:generation_tokens_total", "Tokens generated.").
		is(count(func(s *simengine.Stats) uint64 { return s.GenerationTokens }))
}

func (c *scalars) requestCounters() {
	c.counter(always, "vllm:num_preemptions_total", "Requests sent back to the queue for want of memory.").
		is(count(func(s *simengine.Stats) uint64 { return s.Preemptions }))
	// A request that its client left counts nowhere.
	ended := map[string]func(*simengine.Stats) float64{
		simengine.ReasonStop:   count(func(s *simengine.Stats) uint64 { return s.FinishedStop }),
		simengine.ReasonLength: count(func(s *simengine.Stats) uint64 { return s.FinishedLength }),
	}
	success := c.counter(always, "vllm:request_success_total", "Requests that ended, by why they did.")
	for _, reason := range c.profile.reasons() {
		value := ended[reason]
		if value == nil {
			value = none
		}
		success.with("finished_reason", reason, value)
	}
}

// estimates stay at 0, as in vLLM without --enable-mfu-metrics.
func (c *scalars) estimates() {
	for _, of := range []string{"flops", "read_bytes", "write_bytes"} {
		c.counter(since(V019).python(), "vllm:estimated_"+of+"_per_gpu_total", "Work of a GPU, if it were estimated.").is(none)
	}
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
	stats := c.stats()
	for _, s := range c.series {
		if s.kind == prometheus.CounterValue {
			ch <- prometheus.MustNewConstMetricWithCreatedTimestamp(s.desc, s.kind, s.value(&stats), c.start)
			continue
		}
		ch <- prometheus.MustNewConstMetric(s.desc, s.kind, s.value(&stats))
	}
	tokens := stats.IterationTokens
	if since(Main).has(c.profile) { // which leaves out what was cached
		tokens = stats.IterationComputed
	}
	ch <- iterations(c.iteration, tokens, c.start)
}
