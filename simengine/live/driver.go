// Package live runs one simengine.Engine by the wall clock.
package live

import (
	"context"
	"errors"
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
	// clock: 1000 is a thousand times faster than life. Default 1; at most 1e6.
	Speed float64

	// Observe, if not nil, is told of the outputs of every step in the order in
	// which they happened, with the driver locked: it must be quick and must
	// not call the Driver. The slice is valid during the call.
	Observe func([]simengine.Output)
}

// Driver owns an Engine. Its methods may be called concurrently.
type Driver struct{}

// New returns a driver whose clock stands at 0 until Run is called. The engine
// belongs to it from now on.
func New(e *simengine.Engine, o Options) *Driver { return &Driver{} }

// Run steps the engine until ctx ends, and returns the cause. Streams that are
// open then fail with ErrStopped. It may be called once.
func (d *Driver) Run(ctx context.Context) error { return nil }

// Generate submits r. If r.ID is 0 the driver gives it one that is unique; ids
// of the caller's must stay below 1<<63. Errors are those of Engine.Submit and
// ErrStopped. When ctx ends, or the stream is closed, the request is cancelled.
func (d *Driver) Generate(ctx context.Context, r simengine.Request) (*Stream, error) {
	return nil, nil
}

// Stats returns what the engine showed at the end of its last step.
func (d *Driver) Stats() simengine.Stats { return simengine.Stats{} }

// Config returns the engine's configuration.
func (d *Driver) Config() simengine.Config { return simengine.Config{} }

// Now returns the time on the engine's clock.
func (d *Driver) Now() time.Duration { return 0 }

// ResetPrefixCache is Engine.ResetPrefixCache.
func (d *Driver) ResetPrefixCache() bool { return false }

// Pause stops the engine's clock, and with it everything: requests are taken in
// and wait. It is idempotent.
func (d *Driver) Pause() {}

// Resume lets the clock run on from where it stood. It is idempotent.
func (d *Driver) Resume() {}

// SlowBy makes the engine's clock run at Speed/factor from now on. A factor that
// isn't above 0 is taken for 1.
func (d *Driver) SlowBy(factor float64) {}

// Restart replaces the engine by a fresh one of the same configuration: caches
// and counters are empty, streams fail with ErrRestarted. The clock runs on.
func (d *Driver) Restart() {}

// Stream is the output of one request.
type Stream struct{}

// ID returns the request's id.
func (s *Stream) ID() uint64 { return 0 }

// Next waits for output. If several steps brought some since the last call they
// come as one, with Tokens summed up and Times.At of the last. After the Output
// that is Finished it returns io.EOF; otherwise the errors are those of ctx,
// ErrStopped, ErrRestarted and ErrClosed. One goroutine at a time may call it.
func (s *Stream) Next(ctx context.Context) (simengine.Output, error) {
	return simengine.Output{}, nil
}

// Close cancels the request if it still runs. It is idempotent and may be
// called concurrently with Next.
func (s *Stream) Close() {}
