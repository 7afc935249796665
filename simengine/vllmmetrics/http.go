package vllmmetrics

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Buckets of prometheus-fastapi-instrumentator, in seconds: by route, and for
// all routes together.
var (
	routeBuckets = []float64{.1, .5, 1}
	httpBuckets  = []float64{.01, .025, .05, .075, .1, .25, .5, .75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60}
)

// Names and help texts of the families that are empty until a client comes.
const (
	requestsName, requestsHelp = "http_requests_total", "Answered HTTP requests by route."
	receivedName, receivedHelp = "http_request_size_bytes", "Length of request bodies by route, 0 where it wasn't told."
	sentName, sentHelp         = "http_response_size_bytes", "Length of answers by route, 0 where it wasn't told."
	byRouteName, byRouteHelp   = "http_request_duration_seconds", "Time that an answer took, by route."
)

// methods that have a series of their own; a client may send anything.
var methods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "DELETE": true, "OPTIONS": true, "PATCH": true}

// httpMetrics are those of the web server.
type httpMetrics struct {
	requests       *prometheus.CounterVec
	received, sent *prometheus.SummaryVec
	byRoute        *prometheus.HistogramVec
	all            prometheus.Histogram
}

func newHTTPMetrics() *httpMetrics {
	summary := func(name, help string) *prometheus.SummaryVec {
		return prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: name, Help: help}, []string{"handler"})
	}
	return &httpMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: requestsName, Help: requestsHelp,
		}, []string{"handler", "method", "status"}),
		received: summary(receivedName, receivedHelp),
		sent:     summary(sentName, sentHelp),
		byRoute: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: byRouteName, Help: byRouteHelp, Buckets: routeBuckets,
		}, []string{"handler", "method"}),
		all: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "http_request_duration_highr_seconds", Help: "Time that an answer took.", Buckets: httpBuckets,
		}),
	}
}

// collectors are those of the profile: the Rust front end has no sizes.
func (h *httpMetrics) collectors(p Profile) []prometheus.Collector {
	list := []prometheus.Collector{h.requests, h.byRoute, h.all}
	if p != Rust {
		list = append(list, h.received, h.sent)
	}
	return list
}

// unseen are the families without series yet, which Python declares all the
// same.
func (h *httpMetrics) unseen(seen []*dto.MetricFamily) []*dto.MetricFamily {
	var list []*dto.MetricFamily
	for _, f := range []struct {
		name, help string
		kind       dto.MetricType
	}{
		{requestsName, requestsHelp, dto.MetricType_COUNTER}, {receivedName, receivedHelp, dto.MetricType_SUMMARY},
		{sentName, sentHelp, dto.MetricType_SUMMARY}, {byRouteName, byRouteHelp, dto.MetricType_HISTOGRAM},
	} {
		if !slices.ContainsFunc(seen, func(s *dto.MetricFamily) bool { return s.GetName() == f.name }) {
			list = append(list, &dto.MetricFamily{Name: &f.name, Help: &f.help, Type: &f.kind})
		}
	}
	return list
}

// HTTPAnswer is one answered request, as the web server counts it.
type HTTPAnswer struct {
	Handler  string // a route's pattern, never a path as sent; "" is no route
	Method   string
	Status   int
	Took     time.Duration
	Received int64 // Content-Length of the request; 0 if it wasn't told
	Sent     int64 // and of the answer
}

// ObserveHTTP counts an answer in http_requests_total and its kin.
func (e *Exporter) ObserveHTTP(a HTTPAnswer) {
	if !methods[a.Method] {
		a.Method = "OTHER"
	}
	if a.Handler == "" {
		a.Handler = "none"
	}
	class := "5xx"
	if a.Status >= 100 && a.Status < 600 {
		class = strconv.Itoa(a.Status/100) + "xx"
	}
	h := e.page.Load().http
	counter, err := h.requests.GetMetricWithLabelValues(a.Handler, a.Method, class)
	if err != nil {
		return // a handler that isn't UTF-8
	}
	counter.Inc()
	h.received.WithLabelValues(a.Handler).Observe(float64(max(0, a.Received)))
	h.sent.WithLabelValues(a.Handler).Observe(float64(max(0, a.Sent)))
	h.byRoute.WithLabelValues(a.Handler, a.Method).Observe(a.Took.Seconds())
	h.all.Observe(a.Took.Seconds())
}
