package vllmmetrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// adapterSetsMax bounds the series of vllm:lora_requests_info. vLLM keeps one
// for each set of adapters that ever ran together.
const adapterSetsMax = 64

// loraInfo is vllm:lora_requests_info: names of adapters in labels, and as value
// the unix time at which that was last so. Sets that have passed stay, so a
// reader takes the series with the newest time. vLLM looks at each step; here
// it is at each page. With several engines the last one wins, as in vLLM.
type loraInfo struct {
	desc    *prometheus.Desc
	stats   func(int) simengine.Stats
	engines int
	slots   []string // label max_lora; none with the Rust front end

	mu    sync.Mutex
	steps []uint64 // of each engine, when last looked at
	sets  []adapterSet
}

type adapterSet struct {
	running, waiting string
	at               time.Time
}

func newLoRAInfo(o Options) *loraInfo {
	c := &loraInfo{stats: o.Stats, engines: o.Engines, steps: make([]uint64, o.Engines)}
	names := []string{"running_lora_adapters", "waiting_lora_adapters"}
	if always.python().has(o.Profile) {
		names = append(names, "max_lora")
		c.slots = []string{strconv.Itoa(o.MaxLoRAs)}
	}
	c.desc = prometheus.NewDesc("vllm:lora_requests_info", "Unix time at which these adapters were last at work.", names, nil)
	return c
}

// look notes what the engines have since the last page.
func (c *loraInfo) look(now time.Time) {
	for i := range c.engines {
		s := c.stats(i)
		if s.Steps == c.steps[i] {
			continue // nothing was shown since
		}
		c.steps[i] = s.Steps
		found := false
		for j := range c.sets {
			if set := &c.sets[j]; set.running == s.RunningAdapters && set.waiting == s.WaitingAdapters {
				set.at, found = now, true
			}
		}
		if !found {
			c.add(adapterSet{s.RunningAdapters, s.WaitingAdapters, now})
		}
	}
}

// add makes room by forgetting the oldest.
func (c *loraInfo) add(set adapterSet) {
	if len(c.sets) < adapterSetsMax {
		c.sets = append(c.sets, set)
		return
	}
	oldest := 0
	for i := range c.sets {
		if c.sets[i].at.Before(c.sets[oldest].at) {
			oldest = i
		}
	}
	c.sets[oldest] = set
}

// Describe implements prometheus.Collector.
func (c *loraInfo) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect implements prometheus.Collector.
func (c *loraInfo) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look(time.Now())
	for _, set := range c.sets {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(set.at.UnixNano())/1e9,
			append([]string{set.running, set.waiting}, c.slots...)...)
	}
}
