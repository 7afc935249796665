// Package live runs one simengine.Engine by the wall clock.
//
// The engine's clock is a multiple of the wall clock. Steps take place at their
// exact time on the engine's clock, never at the time at which a timer happened
// to fire: a driver that was held up catches up, and what requests and metrics
// see is what the same engine would do in a plain loop over virtual time. Only
// the wall clock moments at which outputs are handed over vary.
//
// Run is the only goroutine; the other methods take the driver's lock for some
// microseconds. If the machine can't keep up with Options.Speed, outputs come
// late and the timeline stays right.
package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Errors of streams and of Generate, besides those of Engine.Submit.
var (
	ErrStopped   = errors.New("engine has stopped")   // Run returned
	ErrRestarted = errors.New("engine was restarted") // by Restart, under a stream
	ErrClosed    = errors.New("stream is closed")     // by Close
)

// Options of a Driver. The zero value runs at the speed of life.
type Options struct {
	// Speed is how many seconds of the engine's time pass in one of the wall
	// clock: 1000 is a thousand times faster than life. Default 1; at most
	// SpeedMax.
	Speed float64

	// Observe, if not nil, is told of the outputs of every step in the order in
	// which they happened, with the driver locked: it must be quick and must
	// not call the Driver. The slice is valid during the call.
	Observe func([]simengine.Output)

	// ObserveKV, if not nil, is told of the KV events of each step that had
	// some, before Observe of the same step, under the same rules. It needs
	// simengine.Config.KVEvents.
	ObserveKV func(at time.Duration, events []simengine.KVEvent)
}

// Driver owns an Engine. Its methods may be called concurrently.
type Driver struct {
	observe   func([]simengine.Output)
	observeKV func(time.Duration, []simengine.KVEvent)
	wake      chan struct{} // something for Run to see; holds one

	rank int // in a Group

	mu      sync.Mutex // guards all below, and the engine
	engine  *simengine.Engine
	clock   clock
	streams map[uint64]*Stream // of requests that run or wait
	lastID  uint64
	stopped bool
}

// New returns a driver whose clock stands at 0 until Run is called. The engine
// belongs to it from now on.
func New(e *simengine.Engine, o Options) *Driver {
	return &Driver{
		observe:   o.Observe,
		observeKV: o.ObserveKV,
		wake:      make(chan struct{}, 1),
		engine:    e,
		clock:     clock{speed: between(1/SpeedMax, o.Speed, SpeedMax), factor: 1},
		streams:   make(map[uint64]*Stream),
	}
}

// Run steps the engine until ctx ends, and returns the cause. Streams that are
// open then fail with ErrStopped. It may be called once.
func (d *Driver) Run(ctx context.Context) error {
	d.change(func() { d.clock.started = true })
	defer d.stop()
	timer := time.NewTimer(waitMax)
	defer timer.Stop()
	for ctx.Err() == nil {
		wait := d.catchUp()
		if wait <= 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-d.wake:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

// stepsAtOnce bounds the time for which the lock is held by a driver that has
// much to catch up.
const stepsAtOnce = 64

// catchUp does the steps that are due and returns how long to wait for the next.
func (d *Driver) catchUp() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	wall := time.Now()
	now := d.clock.now(wall)
	for range stepsAtOnce {
		at, busy := d.engine.Next()
		if !busy {
			return waitMax
		}
		if at > now {
			return d.clock.until(wall, at)
		}
		outputs := d.engine.Step(at)
		if events := d.engine.KVEvents(); len(events) > 0 && d.observeKV != nil {
			d.observeKV(at, events)
		}
		d.deliver(outputs)
	}
	return 0
}

// deliver hands outputs over. The lock is held.
func (d *Driver) deliver(outputs []simengine.Output) {
	if len(outputs) == 0 {
		return
	}
	if d.observe != nil {
		d.observe(outputs)
	}
	for _, o := range outputs {
		s := d.streams[o.ID]
		if s == nil {
			continue // its reader is gone
		}
		if o.Finished {
			delete(d.streams, o.ID)
			s.unhook()
		}
		s.push(o)
	}
}

func (d *Driver) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	d.failAll(ErrStopped)
}

// failAll ends all streams. The lock is held.
func (d *Driver) failAll(err error) {
	for _, s := range d.streams {
		s.unhook()
		s.fail(err)
	}
	clear(d.streams)
}

func (d *Driver) signal() {
	select {
	case d.wake <- struct{}{}:
	default: // Run is told already
	}
}

// ownIDs is where the ids begin that the driver gives.
const ownIDs = 1 << 63

// Generate submits r. If r.ID is 0 the driver gives it one that is unique; ids
// of the caller's must stay below 1<<63. Errors are those of Engine.Submit and
// ErrStopped. When ctx ends, or the stream is closed, the request is cancelled.
func (d *Driver) Generate(ctx context.Context, r simengine.Request) (*Stream, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if r.ID >= ownIDs {
		return nil, fmt.Errorf("submitting request: %w: id of the driver's own", simengine.ErrBadRequest)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return nil, ErrStopped
	}
	if r.ID == 0 {
		d.lastID++
		r.ID = ownIDs + d.lastID
	}
	if err := d.engine.Submit(d.clock.now(time.Now()), r); err != nil {
		return nil, err
	}
	s := &Stream{driver: d, id: r.ID, rank: d.rank, news: make(chan struct{}, 1)}
	s.unhook = context.AfterFunc(ctx, func() { s.end(context.Cause(ctx)) })
	d.streams[r.ID] = s
	d.signal()
	return s, nil
}

// cancel gives up the request of s, if it still runs.
func (d *Driver) cancel(s *Stream) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.streams[s.id] != s {
		return
	}
	delete(d.streams, s.id)
	d.engine.Cancel(d.clock.now(time.Now()), s.id)
	d.signal()
}

// Stats returns what the engine showed at the end of its last step.
func (d *Driver) Stats() simengine.Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.engine.Stats()
}

// inFlight is the number of requests that were submitted and have not ended.
func (d *Driver) inFlight() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.streams)
}

// Rank returns d for rank 0, nil for others: a Driver stands for a Group of one.
func (d *Driver) Rank(i int) *Driver {
	if i != 0 {
		return nil
	}
	return d
}

// Config returns the engine's configuration.
func (d *Driver) Config() simengine.Config {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.engine.Config()
}

// Now returns the time on the engine's clock.
func (d *Driver) Now() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock.now(time.Now())
}
