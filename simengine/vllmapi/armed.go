package vllmapi

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Faults are what goes wrong with a server. Its methods may be called
// concurrently.
type Faults struct {
	s    *Server
	wake chan struct{} // tells Run of a change; holds one

	door atomic.Pointer[door] // the server's port, if Listen opened it

	mu    sync.Mutex
	armed []*armedFault
	added uint64 // ever
}

func newFaults(s *Server) *Faults { return &Faults{s: s, wake: make(chan struct{}, 1)} }

// armedFault is a fault that may hit.
type armedFault struct {
	Fault
	added  time.Time
	seed   uint64 // decides what Share hits
	passed int    // requests or scrapes since then
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
	if f.Kind == FaultRefuse && fs.door.Load() == nil {
		return nil, errors.New("adding fault: nothing listens that could refuse")
	}
	a := &armedFault{Fault: f, added: time.Now(), over: make(chan struct{})}
	if f.Kind == FaultMetricsFrozen && f.At == 0 && f.AfterRequests == 0 {
		a.frozen = fs.page()
	}
	fs.mu.Lock()
	fs.added++
	a.seed = mix(fs.s.c.Seed ^ fs.added)
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
	return fs.hit(now, func(f *Fault) bool { return !f.ofPage() && !f.ofServer() })
}

func (fs *Faults) hit(now time.Time, concerns func(*Fault) bool) *armedFault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var found *armedFault
	for _, a := range fs.armed {
		if !concerns(&a.Fault) {
			continue
		}
		if found == nil && a.active(now) && a.chosen() {
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

// chosen says whether the request is of the fault's share.
func (a *armedFault) chosen() bool {
	return a.Share == 0 || float64(mix(a.seed+uint64(a.passed)))/(1<<64) < a.Share
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
