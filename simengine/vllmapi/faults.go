package vllmapi

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// FaultKind is what goes wrong.
type FaultKind string

// Kinds that hit requests to generate.
const (
	FaultStatus      FaultKind = "status"       // answered with Status and Message or Body, unread
	FaultClose       FaultKind = "close"        // connection closed before the body is read
	FaultCloseBody   FaultKind = "close_body"   // connection closed after half of the body
	FaultHang        FaultKind = "hang"         // taken in and never answered, until the fault is over
	FaultDelay       FaultKind = "delay"        // taken in, and looked at after Delay
	FaultCloseStream FaultKind = "close_stream" // connection closed after Tokens tokens; of an answer in one piece, before it
	FaultStreamError FaultKind = "stream_error" // error event after Tokens tokens; of an answer in one piece, status 500
	FaultNoDone      FaultKind = "no_done"      // a stream ends well, but without the event that says so
)

// Kinds that hit /metrics.
const (
	FaultMetrics       FaultKind = "metrics"        // Body, Status, Header, Delay, Wait and Cut instead of the page
	FaultMetricsFrozen FaultKind = "metrics_frozen" // the page as it was when the fault set in
)

// Kinds that hit the whole server. They take only At and For, and take effect
// while Faults.Run runs.
const (
	FaultSlow    FaultKind = "slow"    // the engine runs slower by Factor
	FaultPause   FaultKind = "pause"   // the engine stands still; /health answers
	FaultSleep   FaultKind = "sleep"   // as /sleep?level=Level does: requests are aborted, new ones wait
	FaultRestart FaultKind = "restart" // connections are cut, the port is shut for For, caches and counters are empty
	FaultRefuse  FaultKind = "refuse"  // connections are cut and refused; the engine remembers
)

// FaultKinds lists them all.
func FaultKinds() []FaultKind {
	kinds := make([]FaultKind, 0, len(faultWords))
	for _, w := range faultWords {
		kinds = append(kinds, w.kind)
	}
	return kinds
}

// Fault is something that goes wrong on purpose. Of several that hit a request
// the one that was added first counts.
type Fault struct {
	Kind FaultKind

	// AfterRequests is how many requests to generate (of a fault of /metrics:
	// scrapes) pass before it sets in, counted since it was added.
	AfterRequests int

	// At is how long after it was added it sets in.
	At time.Duration

	// For is how long it lasts from then on; 0 is until it is removed. A restart
	// is over at once, and its port is shut for For.
	For time.Duration

	// Count is how many requests or scrapes it hits; 0 is all.
	Count int

	// Share is the part of them that it hits, above 0 and at most 1; 0 is all.
	// Which they are follows from the server's seed.
	Share float64

	Status  int               // of FaultStatus, default 500; of FaultMetrics, default 200
	Message string            // of errors; default "simulated fault"
	Header  map[string]string // of FaultStatus and FaultMetrics
	Delay   time.Duration     // of FaultDelay, more than 0; of FaultMetrics
	Tokens  int               // of FaultCloseStream and FaultStreamError
	Factor  float64           // of FaultSlow; more than 0
	Level   int               // of FaultSleep, 0 to 2

	Body *string         // of FaultMetrics, nil is the true page; of FaultStatus, nil is an error as vLLM has it
	Wait <-chan struct{} // FaultMetrics answers when it is closed; nil is at once
	Cut  bool            // FaultMetrics closes the connection after Body, before the answer's end
}

// faultWords are the kinds, and the fields that each takes besides Kind, At and
// For: (c)ounts of requests, (s)tatus and header, (m)essage, (d)elay, (t)okens,
// (f)actor, (l)evel, (b)ody, c(u)t and wait.
var faultWords = []struct {
	kind  FaultKind
	takes string
}{
	{FaultStatus, "csmb"}, {FaultClose, "c"}, {FaultCloseBody, "c"}, {FaultHang, "c"}, {FaultDelay, "cd"},
	{FaultCloseStream, "ct"}, {FaultStreamError, "ctm"}, {FaultNoDone, "c"},
	{FaultMetrics, "csdbu"}, {FaultMetricsFrozen, "c"},
	{FaultSlow, "f"}, {FaultPause, ""}, {FaultSleep, "l"}, {FaultRestart, ""}, {FaultRefuse, ""},
}

// Validate tells what makes no sense.
func (f *Fault) Validate() error {
	i := slices.Index(FaultKinds(), f.Kind)
	if i < 0 {
		return fmt.Errorf("checking fault: unknown kind %q, want one of %v", f.Kind, FaultKinds())
	}
	for _, field := range []struct {
		name string
		word byte
		set  bool
	}{
		{"after_requests", 'c', f.AfterRequests != 0}, {"count", 'c', f.Count != 0}, {"share", 'c', f.Share != 0},
		{"status", 's', f.Status != 0}, {"header", 's', f.Header != nil}, {"message", 'm', f.Message != ""},
		{"delay", 'd', f.Delay != 0}, {"tokens", 't', f.Tokens != 0}, {"factor", 'f', f.Factor != 0},
		{"level", 'l', f.Level != 0}, {"body", 'b', f.Body != nil}, {"cut", 'u', f.Cut || f.Wait != nil},
	} {
		if field.set && strings.IndexByte(faultWords[i].takes, field.word) < 0 {
			return fmt.Errorf("checking fault: %s takes no %s", f.Kind, field.name)
		}
	}
	switch {
	case f.AfterRequests < 0 || f.At < 0 || f.For < 0 || f.Count < 0 || f.Tokens < 0 || f.Delay < 0:
		return fmt.Errorf("checking fault: %s has a negative number", f.Kind)
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return fmt.Errorf("checking fault: status is %d, want 200 to 599", f.Status)
	case !(f.Share >= 0 && f.Share <= 1):
		return fmt.Errorf("checking fault: share is %v, want more than 0 and at most 1", f.Share)
	case f.Kind == FaultSlow && !(f.Factor > 0 && f.Factor <= 1e6):
		return fmt.Errorf("checking fault: factor is %v, want more than 0 and at most 1e6", f.Factor)
	case f.Kind == FaultDelay && f.Delay == 0:
		return fmt.Errorf("checking fault: %s has no delay", f.Kind)
	case f.Level < 0 || f.Level > simengine.LevelMax:
		return fmt.Errorf("checking fault: level is %d, want 0 to %d", f.Level, simengine.LevelMax)
	}
	return nil
}

func (f *Fault) ofPage() bool { return f.Kind == FaultMetrics || f.Kind == FaultMetricsFrozen }
func (f *Fault) ofServer() bool {
	switch f.Kind {
	case FaultSlow, FaultPause, FaultSleep, FaultRestart, FaultRefuse:
		return true
	}
	return false
}

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
