// Package vllmmetrics shows an engine's numbers as vLLM's /metrics does.
package vllmmetrics

import (
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Profile is a vLLM version whose names are shown.
type Profile string

// The profiles: names came and went with versions.
const (
	V09  Profile = "vllm-0.9"  // 0.9.2: gpu_* and kv_* names of the cache, time per output token
	V011 Profile = "vllm-0.11" // as 0.9, and inter-token latency
	Main Profile = "main"      // kv_* only, waiting by reason, tokens by source, pool size in tokens
)

// Profiles lists them, oldest first.
func Profiles() []Profile { return []Profile{V09, V011, Main} }

// CacheInfo is what vllm:cache_config_info says. Zero fields take vLLM's
// defaults, except the sizes.
type CacheInfo struct {
	BlockSize            int
	Blocks               int
	KVTokens             int
	DisablePrefixCaching bool
	CacheDtype           string  // default auto
	HashAlgo             string  // default sha256
	GPUMemoryUtilization float64 // default 0.92, of the older profiles 0.9
}

// CacheInfoOf is the CacheInfo of an engine of this configuration.
func CacheInfoOf(c simengine.Config) CacheInfo { return CacheInfo{} }

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
// concurrently.
type Exporter struct{}

// New returns a page with every series at 0.
func New(o Options) (*Exporter, error) { return &Exporter{}, nil }

// Observe takes the outputs of a step: times to first token and between tokens,
// and, of requests that ended, latencies and lengths. It fits
// live.Options.Observe.
func (e *Exporter) Observe(outputs []simengine.Output) {}

// ObserveParams takes what a client asked for, once per finished request: n
// choices and at most maxTokens tokens.
func (e *Exporter) ObserveParams(n, maxTokens int) {}

// ObserveHTTP counts an answer in http_requests_total. The handler is a route's
// pattern, never a path as sent; unknown routes are "none".
func (e *Exporter) ObserveHTTP(handler, method string, status int) {}

// SetSleep shows vllm:engine_sleep_state: 0 awake, 1 weights offloaded, 2 all
// discarded. Profiles that lack the metric ignore it.
func (e *Exporter) SetSleep(level int) {}

// Restart empties what was observed, as a new process has it.
func (e *Exporter) Restart(start time.Time) {}

// ContentType is the Content-Type of the page.
func (e *Exporter) ContentType() string { return "" }

// WriteTo writes the page. It implements io.WriterTo.
func (e *Exporter) WriteTo(w io.Writer) (int64, error) { return 0, nil }

// Gather returns the page as metric families.
func (e *Exporter) Gather() ([]*dto.MetricFamily, error) { return nil, nil }

var _ prometheus.Gatherer = (*Exporter)(nil)
