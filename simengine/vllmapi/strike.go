package vllmapi

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"strconv"
	"time"
)

// The methods below are what a fault does to a request; a nil fault does
// nothing.

// beforeBody strikes before the body is read, and says whether it answered.
func (a *armedFault) beforeBody(x *exchange) bool {
	if a == nil {
		return false
	}
	switch a.Kind {
	case FaultClose:
		x.abort()
	case FaultCloseBody:
		half := max(1, x.r.ContentLength/2) // of a body without a length, the first byte
		x.entry.BodyLength, _ = io.CopyN(io.Discard, x.r.Body, half)
		x.abort()
	case FaultStatus:
		// The body is left to the http.Server, which reads some of it so that
		// the connection can serve again.
		a.setHeader(x)
		status := cmp.Or(a.Status, http.StatusInternalServerError)
		if a.Body != nil {
			x.WriteHeader(status)
			_, _ = io.WriteString(x, *a.Body) // a client that left needs no answer
			return true
		}
		kind := "InternalServerError"
		if status < 500 {
			kind = http.StatusText(status)
		}
		(&apiError{status, kind, a.message(), ""}).write(x)
		return true
	}
	return false
}

// beforeAnswer strikes when the body was read.
func (a *armedFault) beforeAnswer(x *exchange) bool {
	if a == nil {
		return false
	}
	switch a.Kind {
	case FaultDelay:
		a.wait(x)
		return false
	case FaultNoDone:
		x.ResponseWriter = &undone{x.ResponseWriter}
		return false
	case FaultHang:
	default:
		return false
	}
	var end <-chan time.Time
	if a.For > 0 {
		timer := time.NewTimer(time.Until(a.began.Add(a.For)))
		defer timer.Stop()
		end = timer.C
	}
	select {
	case <-x.r.Context().Done():
	case <-a.over:
	case <-end:
	}
	x.abort()
	return true
}

// wait lets Delay pass, or until the client leaves or the fault is removed.
func (a *armedFault) wait(x *exchange) {
	timer := time.NewTimer(a.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.over:
	case <-x.r.Context().Done():
	}
}

// undone swallows the event that says that a stream is complete.
type undone struct{ http.ResponseWriter }

// lastEvents begin the last events of streams, by API.
var lastEvents = [][]byte{[]byte("data: [DONE]"), []byte("event: message_stop"), []byte("event: response.completed")}

func (u *undone) Write(b []byte) (int, error) {
	end, boundary := len(b), []byte("\n\n")
	if events := bytes.TrimSuffix(b, boundary); len(events) < len(b) {
		last := bytes.LastIndex(events, boundary)
		if last < 0 {
			last = -len(boundary)
		}
		last += len(boundary)
		for _, begin := range lastEvents {
			if bytes.HasPrefix(events[last:], begin) {
				end = last
			}
		}
	}
	if end > 0 {
		if n, err := u.ResponseWriter.Write(b[:end]); err != nil {
			return n, err
		}
	}
	return len(b), nil
}

// Unwrap is for http.ResponseController.
func (u *undone) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// due says whether it is time to strike in the middle of an answer.
func (a *armedFault) due(generated int) bool {
	return a.midway() && generated >= a.Tokens
}

func (a *armedFault) midway() bool {
	return a != nil && (a.Kind == FaultCloseStream || a.Kind == FaultStreamError)
}

// beyond is by how many tokens an answer got past the fault.
func (a *armedFault) beyond(generated int) int {
	if !a.midway() {
		return 0
	}
	return max(0, generated-a.Tokens)
}

// strikeWhole is what a fault in the middle does to an answer in one piece.
func (a *armedFault) strikeWhole(x *exchange) {
	if a.Kind == FaultCloseStream {
		x.abort()
	}
	internalError(a.message()).write(x)
}

func (a *armedFault) message() string { return cmp.Or(a.Message, "simulated fault") }

func (a *armedFault) setHeader(x *exchange) {
	for name, value := range a.Header {
		x.Header().Set(name, value)
	}
}

// servePage answers a scrape if a fault wants it, and says whether it did.
func (fs *Faults) servePage(x *exchange) bool {
	a := fs.hit(time.Now(), (*Fault).ofPage)
	if a == nil {
		return false
	}
	page := fs.pageOf(a)
	if a.Delay > 0 {
		a.wait(x)
	}
	if a.Wait != nil {
		select {
		case <-a.Wait:
		case <-a.over:
		case <-x.r.Context().Done():
			return true
		}
	}
	if fs.s.c.Exporter != nil {
		x.Header().Set("Content-Type", fs.s.c.Exporter.ContentType())
	}
	a.setHeader(x)
	if !a.Cut {
		x.Header().Set("Content-Length", strconv.Itoa(len(page)))
	}
	x.WriteHeader(cmp.Or(a.Status, http.StatusOK))
	_, _ = x.Write(page) // a scraper that left needs no answer
	if a.Cut {
		x.flush()
		x.abort()
	}
	return true
}

func (fs *Faults) pageOf(a *armedFault) []byte {
	if a.Body != nil {
		return []byte(*a.Body)
	}
	page := fs.page()
	if a.Kind != FaultMetricsFrozen {
		return page
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if a.frozen == nil {
		a.frozen = page
	}
	return a.frozen
}
