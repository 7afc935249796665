package caddyllm

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

const (
	metricsNamespace = "caddy"
	metricsSubsystem = "llm_prefix"
)

// firstTokenBuckets are seconds, from a warm small model to a queue that
// nobody waits for.
var firstTokenBuckets = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160}

// The collectors are the process's: each config has a new registry, and
// registering the same collectors there keeps the counts.
var metrics = struct {
	decisions, fallbacks, scrapes *prometheus.CounterVec
	predicted, actual             prometheus.Histogram
	decision, scrapeTime          prometheus.Histogram
	tokens                        *prometheus.CounterVec
	states                        *stateCollector
}{
	decisions: prometheus.NewCounterVec(opts("decisions_total",
		"Requests sent to an upstream by the decision, by upstream and reason."), []string{"upstream", "reason"}),
	fallbacks: prometheus.NewCounterVec(opts("fallbacks_total",
		"Requests left to the fallback policy, by reason."), []string{"reason"}),
	scrapes: prometheus.NewCounterVec(opts("scrapes_total",
		"Scrapes of upstreams' metrics, by upstream and result."), []string{"upstream", "result"}),
	predicted: prometheus.NewHistogram(histogram("predicted_first_token_seconds",
		"Predicted time to the first token of streamed answers that began.", firstTokenBuckets)),
	actual: prometheus.NewHistogram(histogram("first_token_seconds",
		"Time from the decision to the first byte of streamed answers.", firstTokenBuckets)),
	decision: prometheus.NewHistogram(histogram("decision_seconds",
		"Time to scan a prompt and to decide.", prometheus.ExponentialBuckets(1e-6, 4, 10))),
	scrapeTime: prometheus.NewHistogram(histogram("scrape_duration_seconds",
		"Time of one scrape.", prometheus.ExponentialBuckets(1e-3, 3, 8))),
	tokens: prometheus.NewCounterVec(opts("prompt_tokens_total",
		"Prompt tokens of answers that told their usage: all, those predicted to be cached, and those that were."), []string{"kind"}),
	states: new(stateCollector),
}

func opts(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: name, Help: help}
}

func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: name, Help: help, Buckets: buckets}
}

// registerMetrics registers with one config's registry. Several policies of
// the config do so; all but the first find it done.
func registerMetrics(registry *prometheus.Registry) error {
	if registry == nil {
		return nil
	}
	m := &metrics
	for _, c := range []prometheus.Collector{
		m.decisions, m.fallbacks, m.scrapes, m.predicted, m.actual, m.decision, m.scrapeTime, m.tokens, m.states,
	} {
		if err := registry.Register(c); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
			return err
		}
	}
	return nil
}

func observeDecision(upstream string, reason route.Reason, took time.Duration) {
	metrics.decisions.WithLabelValues(label(upstream), string(reason)).Inc()
	metrics.decision.Observe(took.Seconds())
}

func countFallback(why string) { metrics.fallbacks.WithLabelValues(why).Inc() }

func observeFirstToken(predicted, actual time.Duration) {
	metrics.predicted.Observe(predicted.Seconds())
	metrics.actual.Observe(actual.Seconds())
}

func observeEnd(c *choice, usage *route.Usage) {
	if usage == nil || !usage.CachedKnown || c.several {
		return
	}
	metrics.tokens.WithLabelValues("all").Add(float64(usage.PromptTokens))
	metrics.tokens.WithLabelValues("predicted_cached").Add(float64(c.MatchedTokens))
	metrics.tokens.WithLabelValues("cached").Add(float64(usage.CachedTokens))
}

func observeScrape(upstream, reason string, took time.Duration) {
	if reason == "" {
		reason = "ok"
	}
	metrics.scrapes.WithLabelValues(label(upstream), reason).Inc()
	metrics.scrapeTime.Observe(took.Seconds())
}

// maxLabels bounds the upstreams that have time series of their own; further
// ones share the label "other".
const maxLabels = 1000

var labels = struct {
	sync.RWMutex
	seen map[string]bool
}{seen: make(map[string]bool)}

func label(upstream string) string {
	labels.RLock()
	known, full := labels.seen[upstream], len(labels.seen) >= maxLabels
	labels.RUnlock()
	if known {
		return upstream
	}
	if full {
		return "other"
	}
	labels.Lock()
	defer labels.Unlock()
	if len(labels.seen) >= maxLabels {
		return "other"
	}
	labels.seen[upstream] = true
	return upstream
}

// stateCollector reads the gauges from the states when asked, so that no
// series of an upstream that left stays behind.
type stateCollector struct{}

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, metricsSubsystem, name), help, labels, nil)
}

var (
	descInFlight  = gauge("inflight_requests", "Requests of this proxy in flight, by state, upstream and phase: prefill until the first token, then decode.", "state", "upstream", "phase")
	descKnown     = gauge("upstream_load_known", "1 if the upstream's own queue is known from a fresh scrape, else 0.", "state", "upstream")
	descWaiting   = gauge("upstream_waiting_requests", "Requests that wait at the upstream, whoever sent them, by its last scrape; none if that is unknown.", "state", "upstream")
	descRunning   = gauge("upstream_running_requests", "Requests that the upstream works on, whoever sent them, by its last scrape; none if that is unknown.", "state", "upstream")
	descKVUsage   = gauge("upstream_kv_usage_ratio", "Share of the upstream's KV cache in use, its fullest engine's, by its last scrape; none if that is unknown.", "state", "upstream")
	descScrapeAge = gauge("scrape_age_seconds", "Age of the last good scrape.", "state", "upstream")
	descEntries   = gauge("index_entries", "Prompt blocks believed to be in the upstream's prefix cache.", "state", "upstream")
	descRate      = gauge("prefill_tokens_per_second", "Learned prefill rate.", "state", "upstream")
)

// Describe implements prometheus.Collector.
func (stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descInFlight, descKnown, descWaiting, descRunning, descKVUsage, descScrapeAge, descEntries, descRate} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (stateCollector) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	var all []*state
	states.Range(func(_, v any) bool { // under the pool's lock: only gather
		all = append(all, v.(*state))
		return true
	})
	for name, upstreams := range byName(all, now) {
		for i := range upstreams {
			collectUpstream(ch, name, &upstreams[i])
		}
	}
}

// byName leaves one view of each upstream in each name: states of one name and
// unlike shapes may exist side by side, and a registry refuses a series that
// comes twice.
func byName(all []*state, now time.Time) map[string][]route.Upstream {
	views := make(map[string][]route.Upstream)
	for _, s := range all {
		name := s.name
		if _, taken := views[name]; taken {
			name = s.key
		}
		upstreams := s.snapshot(now)
		views[name] = upstreams[:min(len(upstreams), maxLabels)]
	}
	return views
}

func collectUpstream(ch chan<- prometheus.Metric, state string, u *route.Upstream) {
	send := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{state, u.ID}, labels...)...)
	}
	known := 0.0
	if u.Fresh {
		known = 1
	}
	send(descInFlight, float64(u.Prefill), "prefill")
	send(descInFlight, float64(u.Decode), "decode")
	send(descKnown, known)
	// Old numbers would look like a queue that stands still.
	for desc, n := range map[*prometheus.Desc]route.Num{
		descWaiting: u.Load.Waiting, descRunning: u.Load.Running, descKVUsage: u.Load.KVUsage,
	} {
		if u.Fresh && n.Known {
			send(desc, n.Value)
		}
	}
	if u.Scraped {
		send(descScrapeAge, u.LoadAge.Seconds())
	}
	send(descEntries, float64(u.Entries))
	send(descRate, u.Rate)
}
