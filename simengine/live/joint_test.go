package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// joinedCost has a millisecond of overhead for each request, so that all that
// are joined are on their way before the engine sees the first of them.
var joinedCost = simengine.Cost{Base: time.Millisecond, RequestOverhead: time.Millisecond}

// joined are three requests in an engine whose budget lets the last one begin
// two steps later, and which preempts none.
func joined(t *testing.T, d *Driver) *Joint {
	t.Helper()
	var streams []*Stream
	for _, r := range []simengine.Request{
		{PromptTokens: 100, OutputTokens: 5}, {PromptTokens: 100, OutputTokens: 3}, {PromptTokens: 500, OutputTokens: 4, Finish: simengine.ReasonLength},
	} {
		s, err := d.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	return Join(streams...)
}

// Several streams as one tell of tokens in the order of the steps, to a reader
// that is always there as to one that comes when all is over.
func TestJointTellsTokensInTheOrderOfSteps(t *testing.T) {
	want := []string{
		"0:1", "1:1", // a step of 256: both prompts, and 56 of the third's
		"0:2", "1:2", // 254 of it
		"0:3", "1:3 stop", "2:1", // the rest
		"0:4", "2:2", "0:5 stop", "2:3", "2:4 length",
	}
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, simengine.Config{MaxNumBatchedTokens: 256, MaxNumSeqs: 4, Cost: joinedCost}, Options{})
			j := joined(t, d)
			if late {
				time.Sleep(time.Second)
			}
			var got []string
			for len(got) < len(want) {
				i, o, more, err := j.Next(t.Context())
				if err != nil {
					t.Fatalf("after %q: %v", got, err)
				}
				told := fmt.Sprintf("%d:%d", i, o.GeneratedTokens)
				if o.Finished {
					told += " " + o.Reason
				}
				if o.Tokens != 1 || o.First != (o.GeneratedTokens == 1) {
					t.Errorf("%s: %+v", told, o)
				}
				if got = append(got, told); late && more != (len(got) < len(want)) {
					t.Errorf("%s: more is %v", told, more)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("late reader %v: %q, want %q", late, got, want)
			}
		})
	}
}

// A late reader's backlog is as long as the batch changed, not as the replies are.
func TestJointBacklogIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, simengine.Config{Cost: simengine.Cost{Base: time.Millisecond}}, Options{})
		var streams []*Stream
		for i := range 8 {
			s, err := d.Generate(t.Context(), simengine.Request{PromptTokens: 10, OutputTokens: 5000 + i})
			if err != nil {
				t.Fatal(err)
			}
			streams = append(streams, s)
		}
		j := Join(streams...)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(j.rounds) > 16 {
			t.Errorf("%d rounds wait, want one for each end of a request", len(j.rounds))
		}
		tokens := 0
		for range 8*5000 + 28 {
			_, o, _, err := j.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tokens += o.Tokens
		}
		if _, _, more, _, ok := j.take(); ok || more || tokens != 8*5000+28 {
			t.Errorf("%d tokens were told, and more are", tokens)
		}
	})
}

// Aborts and failures come after what was generated before them.
func TestJointOfAbortedStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, simengine.Config{Cost: joinedCost}, Options{})
		j := joined(t, d)
		time.Sleep(2500 * time.Microsecond) // the overhead, a step, and half of another
		if err := d.Sleep(0, simengine.PauseAbort); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		ends := map[int]int{}
		for len(ends) < 3 {
			i, o, _, err := j.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if o.Finished {
				if o.Reason != simengine.ReasonAbort || o.Tokens != 0 {
					t.Errorf("stream %d ended with %+v, want an abort", i, o)
				}
				ends[i] = o.GeneratedTokens
			}
		}
		if ends[0] != 1 || ends[1] != 1 || ends[2] != 1 {
			t.Errorf("tokens at the aborts: %v, want 1 of each", ends)
		}
		d.Wake()
		j = joined(t, d)
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		if _, _, _, err := j.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next without time = %v", err)
		}
		j.Close()
		if _, _, _, err := j.Next(t.Context()); !errors.Is(err, ErrClosed) || errors.Is(err, io.EOF) {
			t.Errorf("Next of what is closed = %v, want %v", err, ErrClosed)
		}
	})
}
