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

// small is an engine that is soon full, so that requests wait and are preempted.
func small() simengine.Config {
	return simengine.Config{
		Blocks: 60, MaxNumSeqs: 8, MaxNumBatchedTokens: 256,
		Cost: simengine.Cost{Base: 6300 * time.Microsecond, PrefillToken: 16e-6, DecodeSeq: 12.4e-6, ContextToken: 41.5e-9, AttentionTerm: 1.56e-9, RequestOverhead: 5 * time.Millisecond},
	}
}

func newEngine(t *testing.T, c simengine.Config) *simengine.Engine {
	t.Helper()
	e, err := simengine.New(c)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return e
}

// start runs a driver for the rest of the bubble.
func start(t *testing.T, c simengine.Config, o Options) *Driver {
	t.Helper()
	d := New(newEngine(t, c), o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := d.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want %v", err, context.Canceled)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return d
}

func generate(t *testing.T, d *Driver, ctx context.Context, r simengine.Request) *Stream {
	t.Helper()
	s, err := d.Generate(ctx, r)
	if err != nil {
		t.Fatalf("Generate: %v", err)
	}
	return s
}

// read returns all outputs of a stream and the error that ends it.
func read(s *Stream) (outputs []simengine.Output, err error) {
	for {
		o, err := s.Next(context.Background())
		if err != nil {
			return outputs, err
		}
		outputs = append(outputs, o)
	}
}

func TestPauseStopsTheStepsAndSlowByStretchesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := simengine.Config{Cost: simengine.Cost{Base: 10 * time.Millisecond}}
		d := start(t, c, Options{})
		d.Pause()
		d.Pause()
		s := generate(t, d, t.Context(), simengine.Request{PromptTokens: 10, OutputTokens: 2})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next on a paused engine: %v, want %v", err, context.DeadlineExceeded)
		}
		began := time.Now()
		d.SlowBy(5)
		d.Resume()
		for range 2 {
			if _, err := s.Next(t.Context()); err != nil {
				t.Fatalf("Next: %v", err)
			}
		}
		if got := time.Since(began); got != 100*time.Millisecond {
			t.Errorf("two steps of 10ms, slowed by 5, took %v, want 100ms", got)
		}
		if got := d.Now(); got != 20*time.Millisecond {
			t.Errorf("Now() = %v, want 20ms of work", got)
		}
	})
}

func TestRestartEmptiesTheEngineAndFailsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, small(), Options{})
		r := simengine.Request{PromptTokens: 64, Blocks: []uint64{1, 2, 3, 4}, OutputTokens: 50}
		s := generate(t, d, t.Context(), r)
		time.Sleep(100 * time.Millisecond)
		d.Restart()
		outputs, err := read(s)
		if !errors.Is(err, ErrRestarted) || len(outputs) != 1 || !outputs[0].First {
			t.Errorf("the stream gave %+v, %v, want what had come and %v", outputs, err, ErrRestarted)
		}
		if got := d.Stats(); got != (simengine.Stats{}) {
			t.Errorf("Stats() = %+v, want nothing", got)
		}
		outputs, err = read(generate(t, d, t.Context(), r))
		if last := outputs[len(outputs)-1]; err != io.EOF || last.CachedTokens != 0 || last.GeneratedTokens != 50 {
			t.Errorf("after the restart: %+v, %v, want 50 tokens, none cached", last, err)
		}
	})
}
