package vllmapi

import (
	"fmt"
	"slices"
	"strings"
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
