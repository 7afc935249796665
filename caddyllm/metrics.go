package caddyllm

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

const (
	metricsNamespace = "caddy"
	metricsSubsystem = "llm_prefix"
)

// firstTokenBuckets are seconds, from a warm small model to a queue that
// nobody waits for; errorBuckets are those of what a prediction is off by.
var (
	firstTokenBuckets = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160}
	errorBuckets      = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40}
)

// collectors are what the process counts. Each config has a new registry, and
// registering the same collectors there keeps the counts.
type collectors struct {
	decisions, fallbacks, scrapes *prometheus.CounterVec
	predicted, actual             prometheus.Histogram
	off                           *prometheus.HistogramVec
	decision, scrapeTime          prometheus.Histogram
	tokens                        *prometheus.CounterVec
	states                        *stateCollector
	upstreams                     *slots

	panics map[string]*atomic.Uint64 // that were caught, by place
}

var metrics = newCollectors(namedStates, time.Now)

func newCollectors(states func() []namedState, now func() time.Time) *collectors {
	c := &collectors{
		panics: make(map[string]*atomic.Uint64),
		decisions: prometheus.NewCounterVec(opts("decisions_total",
			"Requests sent to an upstream by the decision, by upstream and reason."), []string{"upstream", "reason"}),
		fallbacks: prometheus.NewCounterVec(opts("fallbacks_total",
			"Requests left to the fallback policy, by reason."), []string{"reason"}),
		scrapes: prometheus.NewCounterVec(opts("scrapes_total",
			"Scrapes of upstreams' metrics, by upstream and result: ok, or why not."), []string{"upstream", "result"}),
		predicted: prometheus.NewHistogram(histogram("predicted_first_token_seconds",
			"Predicted time to the first token of streamed answers that began.", firstTokenBuckets)),
		actual: prometheus.NewHistogram(histogram("first_token_seconds",
			"Time from the decision to the first token of streamed answers.", firstTokenBuckets)),
		// Two histograms of what is positive: the sum of one with negative
		// values would go down, and a rate of it would mean nothing.
		off: prometheus.NewHistogramVec(histogram("first_token_error_seconds",
			"How far the first token of streamed answers was from its prediction: late behind it, or early before it.", errorBuckets), []string{"direction"}),
		decision: prometheus.NewHistogram(histogram("decision_seconds",
			"Time to scan a prompt and to decide.", prometheus.ExponentialBuckets(1e-6, 4, 10))),
		scrapeTime: prometheus.NewHistogram(histogram("scrape_duration_seconds",
			"Time of one scrape, also of one that failed.", []float64{.001, .003, .01, .03, .1, .3, 1, 3})),
		tokens: prometheus.NewCounterVec(opts("prompt_tokens_total",
			"Prompt tokens of answers that told their cached tokens: all, those predicted to be cached, and those that were."), []string{"kind"}),
	}
	c.upstreams = newSlots(func(upstream string) {
		gone := prometheus.Labels{"upstream": upstream}
		c.decisions.DeletePartialMatch(gone)
		c.scrapes.DeletePartialMatch(gone)
	})
	c.states = &stateCollector{of: c, all: states, now: now}
	// A series that is there from the beginning has a rate at its first count.
	for _, direction := range []string{"late", "early"} {
		c.off.WithLabelValues(direction)
	}
	for _, kind := range []string{"all", "predicted_cached", "cached"} {
		c.tokens.WithLabelValues(kind)
	}
	for _, place := range places {
		c.panics[place] = new(atomic.Uint64)
	}
	return c
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
	return metrics.register(registry)
}

func (c *collectors) register(registry *prometheus.Registry) error {
	for _, of := range []prometheus.Collector{
		c.decisions, c.fallbacks, c.scrapes, c.predicted, c.actual, c.off, c.decision, c.scrapeTime, c.tokens, c.states,
	} {
		if err := registry.Register(of); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
			return err
		}
	}
	return nil
}

func (c *collectors) decided(upstream string, reason route.Reason, took time.Duration) {
	c.decisions.WithLabelValues(c.upstreams.label(uptime(), upstream), string(reason)).Inc()
	c.decision.Observe(took.Seconds())
}

func (c *collectors) fellBack(why string) { c.fallbacks.WithLabelValues(why).Inc() }

func (c *collectors) began(predicted, actual time.Duration) {
	c.predicted.Observe(predicted.Seconds())
	c.actual.Observe(actual.Seconds())
	if late := actual - predicted; late >= 0 {
		c.off.WithLabelValues("late").Observe(late.Seconds())
	} else {
		c.off.WithLabelValues("early").Observe(-late.Seconds())
	}
}

// ended counts the tokens of an answer that told which of them were cached.
func (c *collectors) ended(of *choice, usage *route.Usage) {
	if usage == nil || !usage.CachedKnown || of.several {
		return
	}
	c.tokens.WithLabelValues("all").Add(float64(usage.PromptTokens))
	c.tokens.WithLabelValues("predicted_cached").Add(float64(of.MatchedTokens))
	c.tokens.WithLabelValues("cached").Add(float64(usage.CachedTokens))
}

func (c *collectors) scraped(upstream, reason string, took time.Duration) {
	if reason == "" {
		reason = "ok"
	}
	c.scrapes.WithLabelValues(c.upstreams.label(uptime(), upstream), reason).Inc()
	c.scrapeTime.Observe(took.Seconds())
}
