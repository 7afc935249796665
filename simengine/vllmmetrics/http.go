package vllmmetrics

import "strconv"

// methods that have a series of their own; a client may send anything.
var methods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "DELETE": true, "OPTIONS": true, "PATCH": true}

// ObserveHTTP counts an answer in http_requests_total. The handler is a route's
// pattern, never a path as sent; unknown routes are "none".
func (e *Exporter) ObserveHTTP(handler, method string, status int) {
	if !methods[method] {
		method = "OTHER"
	}
	if handler == "" {
		handler = "none"
	}
	class := "5xx"
	if status >= 100 && status < 600 {
		class = strconv.Itoa(status/100) + "xx"
	}
	if counter, err := e.page.Load().http.GetMetricWithLabelValues(handler, method, class); err == nil { // but for a handler that isn't UTF-8
		counter.Inc()
	}
}
