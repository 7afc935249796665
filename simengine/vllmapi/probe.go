package vllmapi

import (
	"bytes"
	"net/http"
	"strconv"
)

func (s *Server) health(x *exchange) {
	status := http.StatusOK
	if s.dead.Load() {
		status = http.StatusServiceUnavailable
	}
	x.WriteHeader(status)
}

func (s *Server) version(x *exchange) {
	writeJSON(x, http.StatusOK, map[string]string{"version": s.c.Version})
}

// load counts as vLLM does with --enable-server-load-tracking.
func (s *Server) load(x *exchange) {
	writeJSON(x, http.StatusOK, map[string]int64{"server_load": s.inFlight.Load()})
}

func (s *Server) metrics(x *exchange) {
	if s.faults.servePage(x) {
		return
	}
	if s.c.Exporter == nil {
		detail(x, http.StatusNotFound, "Not Found")
		return
	}
	var page bytes.Buffer
	if _, err := s.c.Exporter.WriteTo(&page); err != nil {
		internalError(err.Error()).write(x)
		return
	}
	x.Header().Set("Content-Type", s.c.Exporter.ContentType())
	x.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	_, _ = page.WriteTo(x) // a scraper that left needs no answer
}
