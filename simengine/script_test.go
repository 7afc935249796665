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

func parseScript(t *testing.T, text string) (s script) {
	t.Helper()
	s.config.Cost = flat
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		fail := func(format string, values ...any) {
			t.Fatalf("line %d: %s", n+1, fmt.Sprintf(format, values...))
		}
		verb, words := words[0], words[1:]
		if verb == "config" {
			s.configure(words, fail)
			continue
		}
		if len(words) == 0 {
			fail("no time")
		}
		at, err := time.ParseDuration(words[0])
		if err != nil {
			fail("%v", err)
		}
		if len(s.acts) > 0 && at < s.acts[len(s.acts)-1].at {
			fail("%v is in the past", at)
		}
		s.acts = append(s.acts, act{at, parseAct(verb, at, words[1:], fail)})
	}
	return s
}

func (s *script) configure(words []string, fail func(string, ...any)) {
	for name, value := range options(words, fail) {
		n, _ := strconv.Atoi(value)
		switch name {
		case "blocks":
			s.config.Blocks = n + 1 // without the placeholder
		case "budget":
			s.config.MaxNumBatchedTokens = n
		case "seqs":
			s.config.MaxNumSeqs = n
		case "length":
			s.config.MaxModelLen = n
		case "priority":
			s.config.PriorityScheduling = true
		case "cold":
			s.config.DisablePrefixCaching = true
		case "async":
			s.config.AsyncScheduling = true
		case "long":
			s.config.LongPrefillTokens = n
		case "alone":
			s.config.LongPrefillAlone = true
		case "adaptive":
			s.config.LongPrefillAdaptive = true
		case "loras":
			s.config.MaxLoRAs = n
		case "watermark":
			x, err := strconv.ParseFloat(value, 64)
			if err != nil {
				fail("%v", err)
			}
			s.config.Watermark = x
		case "overhead":
			d, err := time.ParseDuration(value)
			if err != nil {
				fail("%v", err)
			}
			s.config.Cost.RequestOverhead = d
		default:
			fail("unknown %q", name)
		}
	}
}

// options reads words of the form name or name=value.
func options(words []string, fail func(string, ...any)) map[string]string {
	m := make(map[string]string)
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		if _, twice := m[name]; twice {
			fail("%q twice", name)
		}
		m[name] = value
	}
	return m
}

func parseAct(verb string, at time.Duration, words []string, fail func(string, ...any)) func(*testing.T, *Engine) {
	number := func(word string) int {
		n, err := strconv.Atoi(word)
		if err != nil {
			fail("%v", err)
		}
		return n
	}
	switch {
	case verb == "wake":
		return func(_ *testing.T, e *Engine) { e.Wake(at) }
	case verb == "sleep":
		o := options(words, fail)
		mode, ok := map[string]PauseMode{"abort": PauseAbort, "wait": PauseWait, "keep": PauseKeep}[o["mode"]]
		if !ok {
			fail("unknown mode %q", o["mode"])
		}
		level := number(o["level"])
		return func(t *testing.T, e *Engine) {
			if err := e.Sleep(at, level, mode); err != nil {
				t.Fatal(err)
			}
		}
	case len(words) == 0:
		fail("no request")
	case verb == "cancel":
		id := uint64(number(words[0]))
		return func(_ *testing.T, e *Engine) { e.Cancel(at, id) }
	case verb == "submit":
		o := options(words[1:], fail)
		id := number(words[0])
		text := id
		r := Request{ID: uint64(id), PromptTokens: number(o["prompt"]), OutputTokens: number(o["output"])}
		if o["text"] != "" {
			text = number(o["text"])
		}
		if o["priority"] != "" {
			r.Priority = number(o["priority"])
		}
		r.Adapter = o["adapter"]
		hashes := chain(text, (r.PromptTokens+r.OutputTokens)/16)
		r.Blocks, r.OutputBlocks = hashes[:r.PromptTokens/16], hashes[r.PromptTokens/16:]
		return func(t *testing.T, e *Engine) { submit(t, e, at, r) }
	default:
		fail("unknown %q", verb)
	}
	return nil
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
