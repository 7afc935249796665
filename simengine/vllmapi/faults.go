package vllmapi

import (
	"bytes"
	"fmt"
	"sync"
	"time"
)

// FaultKind is what goes wrong.
type FaultKind string

// Kinds that hit requests to generate.
const (
	FaultStatus      FaultKind = "status"       // answered with Status and Message, unread
	FaultClose       FaultKind = "close"        // connection closed before the body is read
	FaultCloseBody   FaultKind = "close_body"   // connection closed after half of the body
	FaultHang        FaultKind = "hang"         // taken in and never answered, until the fault is over
	FaultCloseStream FaultKind = "close_stream" // connection closed after Tokens tokens; of an answer in one piece, before it
	FaultStreamError FaultKind = "stream_error" // error event after Tokens tokens; of an answer in one piece, status 500
)

// Kinds that hit /metrics.
const (
	FaultMetrics       FaultKind = "metrics"        // Body, Status, Header, Wait and Cut instead of the page
	FaultMetricsFrozen FaultKind = "metrics_frozen" // the page as it was when the fault set in
)

// Kinds that hit the engine. They take only At and For, and take effect while
// Faults.Run runs.
const (
	FaultSlow    FaultKind = "slow"    // runs slower by Factor
	FaultPause   FaultKind = "pause"   // stands still, and answers /health
	FaultRestart FaultKind = "restart" // starts anew with empty caches; requests in flight lose their connection
)

// Fault is something that goes wrong on purpose. Of several that hit a request
// the one that was added first counts.
type Fault struct {
	Kind FaultKind

	// AfterRequests is how many requests to generate (of a fault of /metrics:
	// scrapes) pass before it sets in, counted since it was added.
	AfterRequests int

	// At is how long after it was added it sets in.
	At time.Duration

	// For is how long it lasts from then on; 0 is until it is removed.
	For time.Duration

	// Count is how many requests or scrapes it hits; 0 is all.
	Count int

	Status  int               // of FaultStatus, default 500; of FaultMetrics, default 200
	Message string            // of errors; default "simulated fault"
	Header  map[string]string // of FaultStatus and FaultMetrics
	Tokens  int               // see FaultCloseStream
	Factor  float64           // of FaultSlow; more than 0

	Body *string         // of FaultMetrics; nil is the true page
	Wait <-chan struct{} // FaultMetrics answers when it is closed; nil is at once
	Cut  bool            // FaultMetrics closes the connection after Body, before the answer's end
}

// Validate tells what makes no sense.
func (f *Fault) Validate() error {
	switch f.Kind {
	case FaultStatus, FaultClose, FaultCloseBody, FaultHang, FaultCloseStream, FaultStreamError,
		FaultMetrics, FaultMetricsFrozen:
	case FaultSlow, FaultPause, FaultRestart:
		if f.AfterRequests != 0 || f.Count != 0 {
			return fmt.Errorf("checking fault: %s takes a time, not requests", f.Kind)
		}
		if f.Kind == FaultSlow && !(f.Factor > 0 && f.Factor <= 1e6) {
			return fmt.Errorf("checking fault: factor is %v, want more than 0 and at most 1e6", f.Factor)
		}
	default:
		return fmt.Errorf("checking fault: unknown kind %q", f.Kind)
	}
	if f.AfterRequests < 0 || f.At < 0 || f.For < 0 || f.Count < 0 || f.Tokens < 0 {
		return fmt.Errorf("checking fault: %s has a negative number", f.Kind)
	}
	if f.Status != 0 && (f.Status < 200 || f.Status > 599) {
		return fmt.Errorf("checking fault: status is %d, want 200 to 599", f.Status)
	}
	return nil
}

func (f *Fault) ofPage() bool { return f.Kind == FaultMetrics || f.Kind == FaultMetricsFrozen }
func (f *Fault) ofEngine() bool {
	return f.Kind == FaultSlow || f.Kind == FaultPause || f.Kind == FaultRestart
}

// Faults are what goes wrong with a server. Its methods may be called
// concurrently.
type Faults struct {
	s    *Server
	wake chan struct{} // tells Run of a change; holds one

	mu    sync.Mutex
	armed []*armedFault
}

func newFaults(s *Server) *Faults { return &Faults{s: s, wake: make(chan struct{}, 1)} }

// armedFault is a fault that may hit.
type armedFault struct {
	Fault
	added  time.Time
	passed int // requests or scrapes since then
	hits   int
	began  time.Time // zero until it sets in
	frozen []byte    // page of FaultMetricsFrozen
	over   chan struct{}
}

// Add arms a fault and returns what removes it. What the fault holds by then
// is let go: a hanging connection is closed.
func (fs *Faults) Add(f Fault) (remove func(), err error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	a := &armedFault{Fault: f, added: time.Now(), over: make(chan struct{})}
	if f.Kind == FaultMetricsFrozen && f.At == 0 && f.AfterRequests == 0 {
		a.frozen = fs.page()
	}
	fs.mu.Lock()
	fs.armed = append(fs.armed, a)
	fs.mu.Unlock()
	fs.notify()
	return func() { fs.remove(func(other *armedFault) bool { return other == a }) }, nil
}

// Clear removes all faults.
func (fs *Faults) Clear() { fs.remove(func(*armedFault) bool { return true }) }

func (fs *Faults) remove(which func(*armedFault) bool) {
	fs.mu.Lock()
	kept := make([]*armedFault, 0, len(fs.armed))
	for _, a := range fs.armed {
		if which(a) {
			close(a.over)
		} else {
			kept = append(kept, a)
		}
	}
	fs.armed = kept
	fs.mu.Unlock()
	fs.notify()
}

func (fs *Faults) notify() {
	select {
	case fs.wake <- struct{}{}:
	default:
	}
}

// take counts a request to generate and returns the fault that hits it, or
// nil.
func (fs *Faults) take(now time.Time) *armedFault {
	return fs.hit(now, func(f *Fault) bool { return !f.ofPage() && !f.ofEngine() })
}

func (fs *Faults) hit(now time.Time, concerns func(*Fault) bool) *armedFault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var found *armedFault
	for _, a := range fs.armed {
		if !concerns(&a.Fault) {
			continue
		}
		if found == nil && a.active(now) {
			a.hits++
			found = a
		}
		a.passed++
	}
	return found
}

// active says whether the fault hits now.
func (a *armedFault) active(now time.Time) bool {
	if a.passed < a.AfterRequests || now.Sub(a.added) < a.At {
		return false
	}
	if a.began.IsZero() {
		a.began = now
		if a.AfterRequests == 0 {
			a.began = a.added.Add(a.At)
		}
	}
	return (a.For == 0 || now.Sub(a.began) < a.For) && (a.Count == 0 || a.hits < a.Count)
}

// page is the server's true page of metrics.
func (fs *Faults) page() []byte {
	if fs.s.c.Exporter == nil {
		return nil
	}
	var b bytes.Buffer
	if _, err := fs.s.c.Exporter.WriteTo(&b); err != nil {
		return nil // an empty page, as a broken exporter would give
	}
	return b.Bytes()
}
