package live

import (
	"context"
	"io"
	"sync"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Stream is the output of one request.
type Stream struct {
	driver *Driver
	id     uint64
	rank   int           // of the driver in its Group
	unhook func() bool   // of the request's context
	news   chan struct{} // something for Next to see; holds one

	mu      sync.Mutex
	pending simengine.Output // what Next hasn't returned, in one
	full    bool             // pending holds something
	err     error            // after pending

	joint *Joint // that takes the output instead
	index int    // in it
}

// ID returns the request's id.
func (s *Stream) ID() uint64 { return s.id }

// Next waits for output. If several steps brought some since the last call they
// come as one, with Tokens summed up and Times.At of the last. After the Output
// that is Finished it returns io.EOF; otherwise the errors are those of ctx and
// of the context that Generate was given, ErrStopped, ErrRestarted and
// ErrClosed. One goroutine at a time may call it.
func (s *Stream) Next(ctx context.Context) (simengine.Output, error) {
	for {
		if o, err, ok := s.take(); ok {
			return o, err
		}
		select {
		case <-s.news:
		case <-ctx.Done():
			return simengine.Output{}, context.Cause(ctx)
		}
	}
}

func (s *Stream) take() (o simengine.Output, err error, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full {
		s.full = false
		return s.pending, nil, true
	}
	return o, s.err, s.err != nil
}

// push adds an output. A slow reader finds all of them in one.
func (s *Stream) push(o simengine.Output) {
	s.mu.Lock()
	if s.err == nil && s.joint != nil {
		s.joint.push(s.index, s.rank, o)
		if o.Finished {
			s.err = io.EOF
		}
	}
	if s.err == nil && s.joint == nil {
		if s.full {
			o.Tokens += s.pending.Tokens
			o.First = o.First || s.pending.First
			o.Times.Previous = s.pending.Times.Previous
		}
		s.pending, s.full = o, true
		if o.Finished {
			s.err = io.EOF
		}
	}
	s.mu.Unlock()
	s.signal()
}

// fail ends the stream after what is pending.
func (s *Stream) fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
		if s.joint != nil {
			s.joint.fail(err)
		}
	}
	s.mu.Unlock()
	s.signal()
}

func (s *Stream) signal() {
	select {
	case s.news <- struct{}{}:
	default: // Next is told already
	}
}

// end cancels the request and fails the stream.
func (s *Stream) end(err error) {
	s.driver.cancel(s)
	s.fail(err)
}

// Close cancels the request if it still runs. It is idempotent and may be
// called concurrently with Next, which then returns what is pending and
// ErrClosed.
func (s *Stream) Close() {
	s.unhook()
	s.end(ErrClosed)
}
