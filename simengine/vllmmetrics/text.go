package vllmmetrics

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// The two forms of the page differ from what Go's expfmt writes in what a scraper
// that isn't Prometheus's may look at: how numbers are spelled, the order of
// labels and samples, and where times of creation stand.

// writer writes samples in one of the forms.
type writer struct {
	*bytes.Buffer
	number func(float64) string
	order  func(a, b *dto.LabelPair) int // of labels
}

// head writes the lines above a family's samples.
func (w *writer) head(name, help, kind string) {
	w.WriteString("# HELP " + name + " " + escapeHelp.Replace(help) + "\n# TYPE " + name + " " + kind + "\n")
}

func (w *writer) sample(name string, labels []*dto.LabelPair, value string) {
	labels = slices.Clone(labels)
	slices.SortStableFunc(labels, w.order)
	w.WriteString(name)
	for i, l := range labels {
		w.WriteByte("{,"[min(i, 1)])
		w.WriteString(l.GetName() + `="` + escapeLabel.Replace(l.GetValue()) + `"`)
	}
	if len(labels) > 0 {
		w.WriteByte('}')
	}
	w.WriteString(" " + value + "\n")
}

// buckets writes those of a histogram; the one for what exceeds all is implied.
func (w *writer) buckets(name string, labels []*dto.LabelPair, h *dto.Histogram) {
	le := "le"
	each := func(bound float64, n uint64) {
		text := repr(bound)
		w.sample(name+"_bucket", append(slices.Clone(labels), &dto.LabelPair{Name: &le, Value: &text}), w.number(float64(n)))
	}
	for _, b := range h.GetBucket() {
		each(b.GetUpperBound(), b.GetCumulativeCount())
	}
	if n := len(h.GetBucket()); n == 0 || !math.IsInf(h.GetBucket()[n-1].GetUpperBound(), 1) {
		each(math.Inf(1), h.GetSampleCount())
	}
}

// writePython writes what generate_latest of Python's prometheus_client does:
// labels by name, floats as Python spells them, and a gauge of times of creation
// after each counter, histogram and summary.
func writePython(b *bytes.Buffer, families []*dto.MetricFamily) {
	w := &writer{b, pythonFloat, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) }}
	for _, f := range families {
		name := f.GetName()
		w.head(name, f.GetHelp(), strings.ToLower(f.GetType().String()))
		for _, m := range inMakersOrder(f.GetMetric()) {
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				w.sample(name, m.GetLabel(), w.number(m.GetCounter().GetValue()))
			case dto.MetricType_HISTOGRAM:
				h := m.GetHistogram()
				w.buckets(name, m.GetLabel(), h)
				w.sample(name+"_count", m.GetLabel(), w.number(float64(h.GetSampleCount())))
				w.sample(name+"_sum", m.GetLabel(), w.number(h.GetSampleSum()))
			case dto.MetricType_SUMMARY:
				w.sample(name+"_count", m.GetLabel(), w.number(float64(m.GetSummary().GetSampleCount())))
				w.sample(name+"_sum", m.GetLabel(), w.number(m.GetSummary().GetSampleSum()))
			default:
				w.sample(name, m.GetLabel(), w.number(m.GetGauge().GetValue()))
			}
		}
		w.created(f)
	}
}

func (w *writer) created(f *dto.MetricFamily) {
	if f.GetType() == dto.MetricType_GAUGE || len(f.GetMetric()) == 0 {
		return
	}
	name := f.GetName()
	if f.GetType() == dto.MetricType_COUNTER {
		name = strings.TrimSuffix(name, "_total")
	}
	w.head(name+"_created", f.GetHelp(), "gauge")
	for _, m := range inMakersOrder(f.GetMetric()) {
		at := m.GetCounter().GetCreatedTimestamp()
		switch f.GetType() {
		case dto.MetricType_HISTOGRAM:
			at = m.GetHistogram().GetCreatedTimestamp()
		case dto.MetricType_SUMMARY:
			at = m.GetSummary().GetCreatedTimestamp()
		}
		w.sample(name+"_created", m.GetLabel(), w.number(float64(at.AsTime().UnixNano())/1e9))
	}
}

// rustFloats are the gauges that the Rust front end holds as floats.
var rustFloats = []string{"vllm:kv_cache_usage_perc", "vllm:lora_requests_info"}

// rustOrder is that of the fields of its label sets; a bucket's bound comes
// first. Others follow.
var rustOrder = []string{"le", "model_name", "engine", "method", "status", "handler"}

// writeRust writes the OpenMetrics page of the Rust front end: counters are
// declared without _total, and counts are integers.
func writeRust(b *bytes.Buffer, families []*dto.MetricFamily) {
	rank := func(l *dto.LabelPair) int {
		if i := slices.Index(rustOrder, l.GetName()); i >= 0 {
			return i
		}
		return len(rustOrder)
	}
	integer := func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }
	w := &writer{b, integer, func(a, b *dto.LabelPair) int { return rank(a) - rank(b) }}
	for _, f := range families {
		name := f.GetName()
		if f.GetType() == dto.MetricType_COUNTER {
			name = strings.TrimSuffix(name, "_total")
		}
		w.head(name, f.GetHelp(), strings.ToLower(f.GetType().String()))
		for _, m := range inMakersOrder(f.GetMetric()) {
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				w.sample(name+"_total", m.GetLabel(), integer(m.GetCounter().GetValue()))
			case dto.MetricType_HISTOGRAM:
				h := m.GetHistogram()
				w.sample(name+"_sum", m.GetLabel(), repr(h.GetSampleSum()))
				w.sample(name+"_count", m.GetLabel(), integer(float64(h.GetSampleCount())))
				w.buckets(name, m.GetLabel(), h)
			default:
				text := integer(m.GetGauge().GetValue())
				if slices.Contains(rustFloats, name) {
					text = repr(m.GetGauge().GetValue())
				}
				w.sample(name, m.GetLabel(), text)
			}
		}
	}
	b.WriteString("# EOF\n")
}

var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// repr spells a number as Python does: 3.0, 0.25, 1e-05.
func repr(v float64) string {
	switch size := math.Abs(v); {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	case math.IsNaN(v):
		return "NaN"
	case size != 0 && (size < 1e-4 || size >= 1e16):
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// pythonFloat is repr, but that the library switches to exponents from a million
// on, as Go would: 1.79e+09.
func pythonFloat(v float64) string {
	text := repr(v)
	dot := strings.IndexByte(text, '.')
	if v <= 0 || dot <= 6 {
		return text
	}
	digits := strings.TrimRight(text[:1]+"."+text[1:dot]+text[dot+1:], "0.")
	return digits + "e+0" + strconv.Itoa(dot-1)
}
