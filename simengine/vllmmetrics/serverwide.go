package vllmmetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// serverWide are the few series that stand for the process, not for an engine.
type serverWide struct{ constant []prometheus.Metric }

func newServerWide(o Options, start time.Time) *serverWide {
	c := &serverWide{}
	if always.python().has(o.Profile) {
		desc := prometheus.NewDesc("process_start_time_seconds", "Unix time at which the process began.", nil, nil)
		c.constant = append(c.constant, prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(start.UnixNano())/1e9))
	}
	if since(Main).python().has(o.Profile) {
		// No queue is bounded here, as in vLLM unless it is told to.
		for _, reason := range []string{"max_num_queued_reqs", "max_num_queued_tokens"} {
			desc := prometheus.NewDesc("vllm:admission_rejections_total", "Requests that a bound of the queue turned away.", nil,
				prometheus.Labels{"model_name": o.Model, "reason": reason})
			c.constant = append(c.constant, prometheus.MustNewConstMetricWithCreatedTimestamp(desc, prometheus.CounterValue, 0, start))
		}
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *serverWide) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.constant {
		ch <- m.Desc()
	}
}

// Collect implements prometheus.Collector.
func (c *serverWide) Collect(ch chan<- prometheus.Metric) {
	for _, m := range c.constant {
		ch <- m
	}
}
