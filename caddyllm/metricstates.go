package caddyllm

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// stateCollector reads from the states when asked, so that no series of an
// upstream that left stays behind.
type stateCollector struct {
	of  *collectors
	all func() []namedState
	now func() time.Time
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, metricsSubsystem, name), help, labels, nil)
}

var (
	descInFlight  = desc("inflight_requests", "Requests of this proxy in flight, by state, upstream and phase: prefill until the first token, then decode.", "state", "upstream", "phase")
	descKnown     = desc("upstream_load_known", "1 if the upstream's own queue is known from a fresh scrape, also of one that sleeps, else 0; none with scrape off.", "state", "upstream")
	descWaiting   = desc("upstream_waiting_requests", "Requests that wait at the upstream, whoever sent them, by its last scrape; none if that is unknown.", "state", "upstream")
	descRunning   = desc("upstream_running_requests", "Requests that the upstream works on, whoever sent them, by its last scrape; none if that is unknown.", "state", "upstream")
	descKVUsage   = desc("upstream_kv_usage_ratio", "Share of the upstream's KV cache in use, its fullest engine's, by its last scrape; none if that is unknown.", "state", "upstream")
	descWait      = desc("upstream_wait_seconds", "Predicted time until the upstream would begin a request that is sent now.", "state", "upstream")
	descScrapeAge = desc("scrape_age_seconds", "Age of the last good scrape.", "state", "upstream")
	descEntries   = desc("index_entries", "Prompt blocks believed to be in the upstream's prefix cache.", "state", "upstream")
	descRate      = desc("prefill_tokens_per_second", "Learned prefill rate.", "state", "upstream")

	descBytes     = desc("index_bytes", "Memory that the prefix index has taken.", "state")
	descBound     = desc("index_limit_bytes", "Memory that the prefix index may take, the option memory.", "state")
	descEvictions = desc("index_evictions_total", "Prompt blocks that gave way to others, by the bound that was reached: cache, the size of their upstream's, or memory, the option's.", "state", "bound")

	descPanics = desc("panics_total", "Faults of this policy that were caught, by place.", "place")

	stateDescs = []*prometheus.Desc{
		descInFlight, descKnown, descWaiting, descRunning, descKVUsage, descWait, descScrapeAge, descEntries, descRate,
		descBytes, descBound, descEvictions, descPanics,
	}
)

// Describe implements prometheus.Collector.
func (c *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range stateDescs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *stateCollector) Collect(ch chan<- prometheus.Metric) {
	var scrapePanics uint64
	for _, named := range c.all() {
		upstreams, index := named.state.view(c.now())
		scraping := named.state.users.scraping()
		of := pair("state", named.name)
		for i := range upstreams[:min(len(upstreams), maxLabels)] {
			u := &upstreams[i]
			c.of.upstreams.touch(uptime(), u.ID)
			collectUpstream(ch, of, u, scraping)
		}
		collectIndex(ch, of, &index)
		scrapePanics = named.state.poller.Panics() // they share it
	}
	c.of.upstreams.reclaim(uptime())
	for place, n := range c.of.panics {
		all := n.Load()
		if place == inScrape {
			all += scrapePanics
		}
		count(ch, descPanics, all, pair("place", place))
	}
}

func collectIndex(ch chan<- prometheus.Metric, of *dto.LabelPair, x *route.Index) {
	gauge(ch, descBytes, float64(x.Bytes), of)
	gauge(ch, descBound, float64(x.Bound), of)
	count(ch, descEvictions, x.EvictedByCache, pair("bound", "cache"), of)
	count(ch, descEvictions, x.EvictedByMemory, pair("bound", "memory"), of)
}

var (
	inPrefill = pair("phase", "prefill")
	inDecode  = pair("phase", "decode")
)

func collectUpstream(ch chan<- prometheus.Metric, state *dto.LabelPair, u *route.Upstream, scraping bool) {
	of := []*dto.LabelPair{state, pair("upstream", u.ID)}
	known := u.State == route.StateFresh || u.State == route.StateAsleep
	gauge(ch, descInFlight, float64(u.Decode), inDecode, of[0], of[1])
	gauge(ch, descInFlight, float64(u.Prefill), inPrefill, of[0], of[1])
	switch {
	case known:
		gauge(ch, descKnown, 1, of...)
	case scraping || u.Scraped: // else nobody asked
		gauge(ch, descKnown, 0, of...)
	}
	if known { // old numbers would look like a queue that stands still
		told(ch, descWaiting, u.Load.Waiting, of)
		told(ch, descRunning, u.Load.Running, of)
		told(ch, descKVUsage, u.Load.KVUsage, of)
	}
	gauge(ch, descWait, u.Queued, of...)
	if u.Scraped {
		gauge(ch, descScrapeAge, u.LoadAge.Seconds(), of...)
	}
	gauge(ch, descEntries, float64(u.Entries), of...)
	gauge(ch, descRate, u.Rate, of...)
}

func told(ch chan<- prometheus.Metric, d *prometheus.Desc, n route.Num, of []*dto.LabelPair) {
	if n.Known {
		gauge(ch, d, n.Value, of...)
	}
}

// sample is one value of a page. client_golang's constant metrics make the
// label pairs of each anew, which is most of a page of many upstreams.
type sample struct {
	desc    *prometheus.Desc
	counter bool
	value   float64
	gauge   dto.Gauge
	labels  []*dto.LabelPair // by name
}

// Desc implements prometheus.Metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write implements prometheus.Metric.
func (s *sample) Write(m *dto.Metric) error {
	m.Label = s.labels
	if s.counter {
		m.Counter = &dto.Counter{Value: &s.value}
	} else {
		s.gauge.Value = &s.value
		m.Gauge = &s.gauge
	}
	return nil
}

func pair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

func count(ch chan<- prometheus.Metric, d *prometheus.Desc, n uint64, labels ...*dto.LabelPair) {
	ch <- &sample{desc: d, counter: true, value: float64(n), labels: labels}
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...*dto.LabelPair) {
	ch <- &sample{desc: d, value: v, labels: labels}
}
