package simengine

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the timelines in testdata/*.txt")

// Each script in testdata shows one rule of the scheduler: what is asked of an
// engine above the line, and what it does below it, a line for each call of
// Step. Read a change in them before you commit it.
//
//	config budget=100 seqs=4          sizes; steps take a millisecond
//	submit 0ms 1 prompt=40 output=3   at, id; blocks of prompt and output are
//	                                  those of text=id unless said otherwise
//	cancel 2.5ms 1
//	sleep 3ms level=1 mode=keep
//	wake 9ms
//
// A line of a timeline has the tokens told, as request:tokens so far, with the
// tokens found cached at the first one and the reason at the last; the step that
// begins then, as request+tokens; who waits; and how many blocks are free.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			whole, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			const line = "----\n"
			text, want, _ := strings.Cut(string(whole), line)
			s := parseScript(t, text)
			got := s.timeline(t)
			if *update {
				if err := os.WriteFile(file, []byte(text+line+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("the timeline is\n%s\nwant\n%s", got, want)
			}
			s.checkAdvance(t)
		})
	}
}

// script is an engine and what is asked of it, in order of time.
type script struct {
	config Config
	acts   []act
}

type act struct {
	at time.Duration
	do func(*testing.T, *Engine)
}

// live calls see after each call of Step.
func (s *script) live(t *testing.T, see func(e *Engine, at time.Duration, out []Output)) {
	t.Helper()
	e := newEngine(t, s.config)
	acts := s.acts
	for range 1000 {
		at, busy := e.Next()
		for len(acts) > 0 && (!busy || acts[0].at <= at) {
			acts[0].do(t, e)
			acts = acts[1:]
			at, busy = e.Next()
		}
		if !busy {
			return
		}
		out := e.Step(at)
		if err := e.invariants(); err != nil {
			t.Fatalf("at %v: %v", at, err)
		}
		see(e, at, out)
	}
	t.Fatal("the script has no end")
}

func (s *script) timeline(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	s.live(t, func(e *Engine, at time.Duration, out []Output) {
		fmt.Fprintf(&b, "%v", at)
		list := func(name string, words []string) {
			if len(words) > 0 {
				fmt.Fprintf(&b, " | %s %s", name, strings.Join(words, " "))
			}
		}
		var told, step, wait []string
		for _, o := range out {
			w := fmt.Sprintf("%d:%d", o.ID, o.GeneratedTokens)
			if o.First {
				w += fmt.Sprintf("(%d cached)", o.CachedTokens)
			}
			if o.Finished {
				w += "(" + o.Reason + ")"
			}
			told = append(told, w)
		}
		for _, q := range e.running {
			step = append(step, fmt.Sprintf("%d+%d", q.ID, q.chunk))
		}
		for _, q := range e.waiting.all() {
			w := strconv.FormatUint(q.ID, 10)
			if q.deferred {
				w += "(deferred)"
			}
			wait = append(wait, w)
		}
		list("told", told)
		list("step", step)
		list("wait", wait)
		fmt.Fprintf(&b, " | free %d\n", e.pool.Free())
	})
	return b.String()
}

// checkAdvance compares ends under Advance.
func (s *script) checkAdvance(t *testing.T) {
	t.Helper()
	var want []Output
	s.live(t, func(_ *Engine, _ time.Duration, out []Output) {
		for _, o := range out {
			if o.Finished {
				want = append(want, o)
			}
		}
	})
	e := newEngine(t, s.config)
	var got []Output
	reach := func(at time.Duration) {
		for {
			out := e.Advance(at)
			if len(out) == 0 {
				return
			}
			for _, o := range out {
				if o.Finished {
					got = append(got, o)
				}
			}
		}
	}
	for _, a := range s.acts {
		reach(a.at - 1)
		a.do(t, e)
	}
	reach(time.Hour)
	for i := range min(len(got), len(want)) {
		if got[i].Tokens = want[i].Tokens; got[i] != want[i] {
			t.Errorf("under Advance request %d ends as %+v, want %+v", want[i].ID, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("under Advance %d requests end, want %d", len(got), len(want))
	}
}
