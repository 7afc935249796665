package simengine

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

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
