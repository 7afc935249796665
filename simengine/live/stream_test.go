package live

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// A reader that doesn't read costs one Output, however long the answer.
func TestSlowReaderGetsAllTokensInOneOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, small(), Options{})
		s := generate(t, d, t.Context(), simengine.Request{PromptTokens: 20, OutputTokens: 200})
		time.Sleep(time.Minute)
		o, err := s.Next(t.Context())
		if err != nil || o.Tokens != 200 || !o.First || !o.Finished || o.Reason != simengine.ReasonStop || o.Times.Previous >= 0 {
			t.Errorf("Next = %+v, %v, want 200 tokens, first and last", o, err)
		}
		for range 2 {
			if _, err := s.Next(t.Context()); err != io.EOF {
				t.Errorf("Next after the end: %v, want EOF", err)
			}
		}
		s.Close()
	})
}

func TestReaderInTimeGetsEachToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, small(), Options{})
		outputs, err := read(generate(t, d, t.Context(), simengine.Request{PromptTokens: 20, OutputTokens: 30}))
		if err != io.EOF || len(outputs) != 30 {
			t.Errorf("read %d outputs, %v, want 30, EOF", len(outputs), err)
		}
		for i, o := range outputs {
			if o.Tokens != 1 || o.First != (i == 0) || o.Finished != (i == 29) {
				t.Errorf("output %d = %+v", i, o)
			}
		}
	})
}

// Close and the end of the context free the engine within a step, whoever comes
// first and however often.
func TestLeavingCancelsTheRequest(t *testing.T) {
	gone := errors.New("client has hung up")
	for name, c := range map[string]struct {
		leave func(s *Stream, cancel context.CancelCauseFunc)
		want  error
	}{
		"close":        {func(s *Stream, _ context.CancelCauseFunc) { s.Close() }, ErrClosed},
		"close twice":  {func(s *Stream, _ context.CancelCauseFunc) { s.Close(); s.Close() }, ErrClosed},
		"context":      {func(_ *Stream, cancel context.CancelCauseFunc) { cancel(gone) }, gone},
		"context once": {func(s *Stream, cancel context.CancelCauseFunc) { cancel(gone); synctest.Wait(); s.Close() }, gone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := start(t, small(), Options{})
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				s := generate(t, d, ctx, simengine.Request{PromptTokens: 20, OutputTokens: 500})
				time.Sleep(100 * time.Millisecond)
				if got := d.Stats().Running; got != 1 {
					t.Fatalf("Stats().Running = %d, want 1", got)
				}
				go c.leave(s, cancel)
				outputs, err := read(s)
				if !errors.Is(err, c.want) || len(outputs) > 1 {
					t.Errorf("read %d outputs, %v, want at most one and %v", len(outputs), err, c.want)
				}
				time.Sleep(10 * time.Millisecond)
				if got := d.Stats(); got.Running != 0 || got.Aborted != 1 || got.KVUsage != 0 {
					t.Errorf("Stats() = %+v, want one abort", got)
				}
			})
		})
	}
}

func TestGenerateRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, small(), Options{})
		over, cancel := context.WithCancel(t.Context())
		cancel()
		ok := simengine.Request{PromptTokens: 10, OutputTokens: 10}
		if _, err := d.Generate(over, ok); !errors.Is(err, context.Canceled) {
			t.Errorf("Generate with a context that is over: %v, want %v", err, context.Canceled)
		}
		long := ok
		long.PromptTokens = 1 << 20
		if _, err := d.Generate(t.Context(), long); !errors.Is(err, simengine.ErrTooLong) {
			t.Errorf("Generate of a long prompt: %v, want %v", err, simengine.ErrTooLong)
		}
		foreign := ok
		foreign.ID = 1 << 63
		if _, err := d.Generate(t.Context(), foreign); !errors.Is(err, simengine.ErrBadRequest) {
			t.Errorf("Generate with an id of the driver's: %v, want %v", err, simengine.ErrBadRequest)
		}
		a, b := generate(t, d, t.Context(), ok), generate(t, d, t.Context(), ok)
		if a.ID() == b.ID() || a.ID() == 0 {
			t.Errorf("ids %d and %d, want two of their own", a.ID(), b.ID())
		}
	})
}

// What was asked for before Run is answered; after it nothing is, and nobody is
// left waiting.
func TestStreamsEndWithTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(newEngine(t, small()), Options{})
		early := generate(t, d, t.Context(), simengine.Request{PromptTokens: 10, OutputTokens: 3})
		late := generate(t, d, t.Context(), simengine.Request{PromptTokens: 10, OutputTokens: 800})
		time.Sleep(time.Second)
		if got := d.Now(); got != 0 {
			t.Errorf("Now() before Run = %v, want 0", got)
		}
		stop := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		if err := d.Run(ctx); !errors.Is(err, stop) {
			t.Errorf("Run = %v, want %v", err, stop)
		}
		if _, err := read(early); err != io.EOF {
			t.Errorf("the short stream ended with %v, want EOF", err)
		}
		if _, err := read(late); !errors.Is(err, ErrStopped) {
			t.Errorf("the long stream ended with %v, want %v", err, ErrStopped)
		}
		if _, err := d.Generate(t.Context(), simengine.Request{PromptTokens: 1, OutputTokens: 1}); !errors.Is(err, ErrStopped) {
			t.Errorf("Generate after Run: %v, want %v", err, ErrStopped)
		}
		late.Close()
	})
}
