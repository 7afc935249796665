package vllmmetrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// serverWide are the few series that stand for the process, not for an engine.
type serverWide struct {
	constant []prometheus.Metric
	rejected *prometheus.Desc // by the bound of requests; nil where it isn't shown
	count    *atomic.Uint64
	start    time.Time
}

func newServerWide(o Options, start time.Time) *serverWide {
	c := &serverWide{count: new(atomic.Uint64), start: start}
	if always.python().has(o.Profile) {
		desc := prometheus.NewDesc("process_start_time_seconds", "Unix time at which the process began.", nil, nil)
		c.constant = append(c.constant, prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(start.UnixNano())/1e9))
	}
	if since(Main).python().has(o.Profile) {
		desc := func(reason string) *prometheus.Desc {
			return prometheus.NewDesc("vllm:admission_rejections_total", "Requests that a bound of the queue turned away.", nil,
				prometheus.Labels{"model_name": o.Model, "reason": reason})
		}
		c.rejected = desc("max_num_queued_reqs")
		// Tokens in the queue aren't bounded here, as in vLLM unless it is told to.
		c.constant = append(c.constant, prometheus.MustNewConstMetricWithCreatedTimestamp(desc("max_num_queued_tokens"), prometheus.CounterValue, 0, start))
	}
	return c
}

// ObserveRejection counts a request that was turned away since so many are there.
func (e *Exporter) ObserveRejection() { e.page.Load().server.count.Add(1) }

// Describe implements prometheus.Collector.
func (c *serverWide) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.constant {
		ch <- m.Desc()
	}
	if c.rejected != nil {
		ch <- c.rejected
	}
}

// Collect implements prometheus.Collector.
func (c *serverWide) Collect(ch chan<- prometheus.Metric) {
	for _, m := range c.constant {
		ch <- m
	}
	if c.rejected != nil {
		ch <- prometheus.MustNewConstMetricWithCreatedTimestamp(c.rejected, prometheus.CounterValue, float64(c.count.Load()), c.start)
	}
}
