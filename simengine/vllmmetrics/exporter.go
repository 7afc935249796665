// Package vllmmetrics shows the numbers of one or more engines as vLLM's
// /metrics does: names, types, labels, buckets and the form of the text are
// those of the version that a Profile names. Help texts are this package's own.
//
// Gauges and counters come from simengine.Stats and so are as old as the
// engine's last step; histograms are fed with the outputs of each step. What
// Python's library shows of the process and of its garbage collector is left
// out, but for process_start_time_seconds, by which restarts are seen.
package vllmmetrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// EnginesMax bounds Options.Engines.
const EnginesMax = 64

// Options of an Exporter.
type Options struct {
	Model   string // label model_name
	Engines int    // data-parallel engines, 1 to EnginesMax; default 1
	Cache   CacheInfo
	Profile Profile // default Main

	// Stats is asked for each engine, from 0 on, on every page. Required.
	Stats func(engine int) simengine.Stats

	Start time.Time // of the process; shown as process_start_time_seconds

	// MaxModelLen bounds the buckets of the token histograms; default 131072.
	MaxModelLen int

	// MaxLoRAs is the label max_lora of vllm:lora_requests_info; 0 is an engine
	// without LoRA, which doesn't show it.
	MaxLoRAs int
}

// Exporter is the metrics page of one server. Its methods may be called
// concurrently. Observers take no lock that a page holds while it asks for
// Stats, so that a driver may call them under the lock that Stats takes.
type Exporter struct {
	options Options
	sleep   atomic.Int32
	page    atomic.Pointer[page]
}

// page is what a process has gathered since it began.
type page struct {
	registry   *prometheus.Registry
	histograms []*histograms // by engine
	http       *httpMetrics
	server     *serverWide
}

// New returns a page with every series at 0.
func New(o Options) (*Exporter, error) {
	if o.Engines == 0 {
		o.Engines = 1
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
	case !utf8.ValidString(o.Model):
		return nil, errors.New("preparing metrics: model is not UTF-8")
	case o.Engines < 1 || o.Engines > EnginesMax:
		return nil, fmt.Errorf("preparing metrics: %d engines, want 1 to %d", o.Engines, EnginesMax)
	case o.MaxLoRAs < 0:
		return nil, fmt.Errorf("preparing metrics: %d LoRA slots, want 0 or more", o.MaxLoRAs)
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
	o := e.options
	p := &page{registry: prometheus.NewRegistry(), http: newHTTPMetrics(), server: newServerWide(o, start)}
	collectors := p.http.collectors(o.Profile)
	for i := range o.Engines {
		engine := strconv.Itoa(i)
		labels := prometheus.Labels{"model_name": o.Model, "engine": engine}
		h := newHistograms(o, labels)
		p.histograms = append(p.histograms, h)
		s := &scalars{
			profile: o.Profile, labels: labels, start: start, sleep: &e.sleep, iteration: h.iteration,
			stats: func() simengine.Stats { return o.Stats(i) },
		}
		s.describe(o.Cache.labels(o.Profile, engine))
		collectors = append(append(collectors, s), h.collectors()...)
	}
	collectors = append(collectors, p.server)
	if o.MaxLoRAs > 0 {
		collectors = append(collectors, newLoRAInfo(o))
	}
	for _, c := range collectors {
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

// ContentType is that of the profile's page.
func (e *Exporter) ContentType() string { return e.options.Profile.ContentType() }

// WriteTo writes the page, in one piece. It implements io.WriterTo.
func (e *Exporter) WriteTo(w io.Writer) (int64, error) {
	families, err := e.Gather()
	if err != nil {
		return 0, err
	}
	var text bytes.Buffer
	if e.options.Profile != Rust {
		families = append(families, e.page.Load().http.unseen(families)...)
	}
	slices.SortStableFunc(families, byPlace)
	if e.options.Profile == Rust {
		writeRust(&text, families)
	} else {
		writePython(&text, families)
	}
	n, err := text.WriteTo(w)
	if err != nil {
		return n, fmt.Errorf("writing metrics: %w", err)
	}
	return n, nil
}

// Gather returns the page as metric families; times of creation are fields of
// theirs, not families.
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
