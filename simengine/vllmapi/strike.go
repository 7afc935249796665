package vllmapi

import (
	"cmp"
	"context"
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
	if a == nil || a.Kind != FaultHang {
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

// Run makes faults of the engine set in and end in time. It blocks until ctx
// ends, then undoes them.
func (fs *Faults) Run(ctx context.Context) {
	current := engineState{factor: 1}
	restarted := make(map[*armedFault]bool)
	for {
		wanted, restart, next := fs.plan(time.Now(), restarted)
		if ctx.Err() != nil {
			wanted, restart = engineState{factor: 1}, false
		}
		current = fs.apply(current, wanted, restart)
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-fs.wake:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil && current == (engineState{factor: 1}) {
			return
		}
	}
}

// engineState is what faults make of an engine.
type engineState struct {
	factor float64
	paused bool
}

// plan tells what the engine should be like now, whether it is to start anew,
// and in how long to ask again.
func (fs *Faults) plan(now time.Time, restarted map[*armedFault]bool) (wanted engineState, restart bool, next time.Duration) {
	wanted, next = engineState{factor: 1}, time.Hour
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, a := range fs.armed {
		if !a.ofEngine() {
			continue
		}
		begin, end := a.added.Add(a.At), a.added.Add(a.At+a.For)
		for _, change := range []time.Time{begin, end} {
			if wait := change.Sub(now); wait > 0 {
				next = min(next, wait)
			}
		}
		if now.Before(begin) || a.For > 0 && !now.Before(end) {
			continue
		}
		switch a.Kind {
		case FaultSlow:
			wanted.factor *= a.Factor
		case FaultPause:
			wanted.paused = true
		case FaultRestart:
			restart = restart || !restarted[a]
			restarted[a] = true
		}
	}
	return wanted, restart, next
}

func (fs *Faults) apply(current, wanted engineState, restart bool) engineState {
	driver := fs.s.c.Driver
	if restart {
		driver.Restart()
		if fs.s.c.Exporter != nil {
			fs.s.c.Exporter.Restart(time.Now())
		}
	}
	if wanted.factor != current.factor {
		driver.SlowBy(wanted.factor)
	}
	if wanted.paused && !current.paused {
		driver.Pause()
	}
	if !wanted.paused && current.paused {
		driver.Resume()
	}
	return wanted
}
