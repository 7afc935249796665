package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// DefaultRequests is how many requests a replay has if it isn't told.
	DefaultRequests = 4000
	// MaxRequests bounds what Options can ask for.
	MaxRequests = 1 << 20
	// overlap is how many times as long as one session the time is at least in
	// which the sessions of a closed loop start: before, they don't load each
	// other as they do later.
	overlap = 2
)

// Options say how much of a workload is wanted.
type Options struct {
	// Requests is about how many requests: a trace is cut there, a generator
	// stops at the end of the session. Zero means DefaultRequests.
	Requests int
	// Rate is how many requests a second are going to be asked for, zero if
	// that isn't known. Of a closed loop there are more requests where the
	// sessions would start in too short a time.
	Rate float64
	// Seed is that of generators and of what a trace leaves open.
	Seed uint64
}

// Open returns the workload that name describes: the path of a file, or the
// name of a generator, either with parameters behind a colon.
func Open(name string, o Options) (*Workload, error) { return new(Files).Open(name, o) }

// Open is the function of that name.
func (f *Files) Open(name string, o Options) (*Workload, error) {
	if o.Requests <= 0 {
		o.Requests = DefaultRequests
	}
	if o.Requests > MaxRequests {
		return nil, fmt.Errorf("%d requests, want at most %d", o.Requests, MaxRequests)
	}
	w, err := f.open(name, o)
	if err != nil || !w.Closed || o.Rate == 0 {
		return w, err
	}
	if least := int(o.Rate * overlap * w.sessionLength()); least > w.Requests() {
		o.Requests = min(least, MaxRequests)
		return f.open(name, o)
	}
	return w, nil
}

func (f *Files) open(name string, o Options) (*Workload, error) {
	kind, rest, _ := strings.Cut(name, ":")
	if g, ok := generator(kind); ok {
		p, err := parse(g.Params, rest)
		if err != nil {
			return nil, fmt.Errorf("generating %s: %w", kind, err)
		}
		w := g.make(p, newSource(o.Seed), o.Requests)
		w.Name = name
		return w.finish()
	}
	path := name
	if _, err := os.Stat(path); err != nil && rest != "" {
		path = strings.TrimSuffix(name, ":"+rest)
	} else {
		rest = ""
	}
	w, err := f.readFile(path, rest, o)
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(name, "./") {
		return nil, fmt.Errorf("%q is neither a file nor a generator; generators are %s", name, strings.Join(generatorNames(), ", "))
	}
	if err != nil {
		return nil, err
	}
	w.Name = filepath.Base(path)
	if rest != "" {
		w.Name += ":" + rest
	}
	return w.finish()
}

// finish sorts, and checks what replays rely on.
func (w *Workload) finish() (*Workload, error) {
	if len(w.Sessions) == 0 {
		return nil, errors.New("the workload has no requests")
	}
	slices.SortStableFunc(w.Sessions, func(a, b Session) int { return cmp.Compare(a.Start, b.Start) })
	last := w.Sessions[len(w.Sessions)-1].Start
	w.Span = max(w.Span, last+time.Millisecond)
	return w, nil
}

// lognormal has mean 1.
func lognormal(normal, sigma float64) float64 { return math.Exp(sigma*normal - sigma*sigma/2) }

func inversePower(x, power float64) float64 { return math.Pow(x, -power) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
