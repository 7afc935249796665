// Package vllmmetrics shows an engine's numbers as vLLM's /metrics does: names,
// types, labels and buckets are those of the version that a Profile names. Help
// texts are this package's own.
//
// Gauges and counters come from simengine.Stats and so are as old as the
// engine's last step; histograms are fed with the outputs of each step.
package vllmmetrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Options of an Exporter.
type Options struct {
	Model   string // label model_name
	Engine  string // label engine, the data-parallel rank; default "0"
	Cache   CacheInfo
	Profile Profile                // default Main
	Stats   func() simengine.Stats // asked on every page; required
	Start   time.Time              // of the process; shown as process_start_time_seconds

	// MaxModelLen bounds the buckets of the token histograms; default 131072.
	MaxModelLen int
}

// Exporter is the metrics page of one engine. Its methods may be called
// concurrently. Observe takes no lock that a page holds while it asks for Stats,
// so that a driver may call Observe under the lock that Stats takes.
type Exporter struct {
	options Options
	sleep   atomic.Int32
	page    atomic.Pointer[page]
}

// page is what a process has gathered since it began.
type page struct {
	registry   *prometheus.Registry
	histograms *histograms
	http       *prometheus.CounterVec
}

// New returns a page with every series at 0.
func New(o Options) (*Exporter, error) {
	if o.Engine == "" {
		o.Engine = "0"
	}
	if o.Profile == "" {
		o.Profile = Main
	}
	if o.MaxModelLen <= 0 {
		o.MaxModelLen = simengine.DefaultMaxModelLen
	}
	o.Cache = o.Cache.withDefaults(o.Profile)
	switch {
	case !o.Profile.known():
		return nil, fmt.Errorf("preparing metrics: no profile %q, there are %v", o.Profile, Profiles())
	case o.Stats == nil:
		return nil, errors.New("preparing metrics: no source of stats")
	case !utf8.ValidString(o.Model) || !utf8.ValidString(o.Engine):
		return nil, errors.New("preparing metrics: model or engine is not UTF-8")
	}
	e := &Exporter{options: o}
	p, err := e.newPage(o.Start)
	if err != nil {
		return nil, fmt.Errorf("preparing metrics: %w", err)
	}
	e.page.Store(p)
	return e, nil
}

func (e *Exporter) newPage(start time.Time) (*page, error) {
	labels := prometheus.Labels{"model_name": e.options.Model, "engine": e.options.Engine}
	p := &page{
		registry:   prometheus.NewRegistry(),
		histograms: newHistograms(e.options, labels),
		http: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "http_requests_total", Help: "Answered HTTP requests by route.",
		}, []string{"handler", "method", "status"}),
	}
	scalars := &scalars{exporter: e, created: float64(start.UnixNano()) / 1e9, iteration: p.histograms.iteration}
	scalars.describe(e.options, labels, p.histograms.names())
	for _, c := range append(p.histograms.collectors(), scalars, p.http) {
		if err := p.registry.Register(c); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// SetSleep shows vllm:engine_sleep_state: 0 awake, 1 weights offloaded, 2 all
// discarded. Profiles that lack the metric ignore it.
func (e *Exporter) SetSleep(level int) { e.sleep.Store(int32(min(max(level, 0), 2))) }

// Restart empties what was observed, as a new process has it.
func (e *Exporter) Restart(start time.Time) {
	if p, err := e.newPage(start); err == nil { // as it was in New
		e.sleep.Store(0)
		e.page.Store(p)
	}
}

// ContentType is the Content-Type of the page: that of the Python client library
// of the profile's time.
func (e *Exporter) ContentType() string {
	if e.options.Profile.old() {
		return "text/plain; version=0.0.4; charset=utf-8"
	}
	return "text/plain; version=1.0.0; charset=utf-8"
}

// WriteTo writes the page, in one piece. It implements io.WriterTo.
func (e *Exporter) WriteTo(w io.Writer) (int64, error) {
	families, err := e.Gather()
	if err != nil {
		return 0, err
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			return 0, fmt.Errorf("writing metrics: %w", err)
		}
	}
	n, err := text.WriteTo(w)
	if err != nil {
		return n, fmt.Errorf("writing metrics: %w", err)
	}
	return n, nil
}

// Gather returns the page as metric families.
func (e *Exporter) Gather() ([]*dto.MetricFamily, error) {
	families, err := e.page.Load().registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("gathering metrics: %w", err)
	}
	return families, nil
}

// Interface guards.
var (
	_ prometheus.Gatherer = (*Exporter)(nil)
	_ io.WriterTo         = (*Exporter)(nil)
)
