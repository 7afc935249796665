package caddyllm

import (
	"bytes"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

const (
	// statusEvery is the time between two events of a stream.
	statusEvery = time.Second
	// statusStreams bounds the event streams of the process; pages beyond them
	// ask for state.json.
	statusStreams = 64
	// statusStalled is how long one event may take to be taken.
	statusStalled = 10 * time.Second
)

var streaming atomic.Int32

// serveEvents sends a report a second until the client leaves or the config
// ends. It runs on the request's goroutine.
func (s *LLMStatus) serveEvents(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		h.Set("Content-Type", "text/event-stream")
		return nil
	}
	if streaming.Add(1) > statusStreams {
		streaming.Add(-1)
		h.Set("Retry-After", "5")
		return caddyhttp.Error(http.StatusServiceUnavailable, errors.New("too many event streams; state.json has the same"))
	}
	defer streaming.Add(-1)
	h.Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	// The deadline is the connection's, which may serve other requests later.
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }()
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	var event bytes.Buffer
	event.WriteString("retry: 1000\n")
	for {
		// A state that isn't there yet may come with the next config.
		if text, err := s.cache.get(time.Now()); err == nil {
			event.WriteString("data: ")
			event.Write(text)
			event.WriteByte('\n')
		}
		event.WriteByte('\n')
		_ = out.SetWriteDeadline(time.Now().Add(statusStalled)) // not every writer can
		if _, err := w.Write(event.Bytes()); err != nil {
			return nil
		}
		if err := out.Flush(); err != nil {
			return nil
		}
		event.Reset()
		select {
		case <-r.Context().Done():
			return nil
		case <-s.ended:
			return nil
		case <-tick.C:
		}
	}
}
