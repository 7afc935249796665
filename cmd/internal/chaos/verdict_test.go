package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/gateway"
)

// What counts as served, and what is nobody's fault.
func TestGrades(t *testing.T) {
	began := time.Unix(1000, 0)
	c := chat{1, 2, true}
	o := &outcome{
		began:  began,
		script: []trouble{{kind: killed, server: 0, at: 10 * time.Second, lasts: time.Second}, {kind: slowed, server: 1, lasts: time.Minute}},
		stage:  &stage{answers: map[chat]string{c: "one two three"}, servers: []*server{{address: "a:1"}, {address: "b:1"}}},
	}
	torn := errors.New("unexpected EOF")
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	for name, x := range map[string]struct {
		end  end
		want grade
	}{
		"whole":                   {end{status: 200, text: "one two three", whole: true}, served},
		"another text":            {end{status: 200, text: "one two four", whole: true}, wrong},
		"twice":                   {end{status: 200, text: "one twoone two three", whole: true}, wrong},
		"without its end":         {end{status: 200, text: "one two three"}, wrong},
		"torn though all is well": {end{status: 200, text: "one two", err: torn, upstream: "a:1", began: at(2), ended: at(4)}, wrong},
		"torn by a death":         {end{status: 200, text: "one two", err: torn, upstream: "a:1", began: at(9), ended: at(11)}, died},
		"torn and garbled":        {end{status: 200, text: "one tow", err: torn, upstream: "a:1", began: at(9), ended: at(11)}, wrong},
		"torn by a slow server":   {end{status: 200, text: "one two", err: torn, upstream: "b:1", began: at(9), ended: at(11)}, wrong},
		"an error":                {end{status: 502, upstream: "a:1", began: at(9), ended: at(11)}, lost},
		"an empty answer":         {end{status: 200, whole: true}, lost},
		"no connection":           {end{err: torn}, unasked},
	} {
		x.end.chat = c
		if got := o.grade(&x.end); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}

// Whatever is missed is said, and shown in the exit status.
func TestAMissedBoundIsPrinted(t *testing.T) {
	o := &outcome{
		stage: &stage{failed: []string{"reloading: no"}}, seen: map[string]bool{"a": true, "b": true, "c": true, "d": true, "e": true, "f": true},
		before: gateway.Inside{Goroutines: 30, Heap: 10}, then: gateway.Inside{Goroutines: 50, Heap: 15},
	}
	var text strings.Builder
	if o.print(&text) {
		t.Error("a reload that came out wrong is passed by")
	}
	if got := text.String(); strings.Count(got, "MISSED") != 1 || strings.Count(got, "| ok |") != 8 {
		t.Errorf("printed:\n%s\nwant one bound missed of nine", got)
	}
	o.stage.failed = nil
	if !o.print(&text) {
		t.Error("nothing is missed, and yet it fails")
	}
	o.then.Goroutines++
	if o.print(&text) {
		t.Error("a goroutine too many is passed by")
	}
}

func TestStreamsAreWholeOnce(t *testing.T) {
	const role, one, two, end = `data: {"choices":[{"delta":{"role":"assistant"}}]}`, `data: {"choices":[{"delta":{"content":"one "}}]}`,
		`data: {"choices":[{"delta":{"content":"two"},"finish_reason":"length"}]}`, `data: [DONE]`
	for name, c := range map[string]struct {
		events []string
		text   string
		whole  bool
		fails  bool
	}{
		"whole":           {[]string{role, one, two, end}, "one two", true, false},
		"not done":        {[]string{role, one, two}, "one two", false, false},
		"done twice":      {[]string{role, one, two, end, end}, "one two", false, false},
		"begun twice":     {[]string{role, one, role, one, two, end}, "one one two", false, false},
		"going on":        {[]string{role, one, two, end, one}, "one two", false, true},
		"an error within": {[]string{role, one, `data: {"error":{"message":"no"}}`, end}, "one ", false, true},
	} {
		text, whole, err := readStream(strings.NewReader(strings.Join(c.events, "\n\n") + "\n\n"))
		if text != c.text || whole != c.whole || (err != nil) != c.fails {
			t.Errorf("%s: %q, whole %v, %v", name, text, whole, err)
		}
	}
}

// The configs differ in what they say, and all have the servers in one order.
func TestConfigs(t *testing.T) {
	good, bad := configs([]string{"a:1", "b:2"}, "c:3")
	seen := make(map[string]bool)
	for _, c := range append(good, bad...) {
		seen[c.Policy+c.Proxy+c.More] = true
		if strings.Join(c.Upstreams, " ") != "a:1 b:2" || !c.Admin {
			t.Errorf("%+v", c)
		}
	}
	if want := len(good) + len(bad); len(seen) != want {
		t.Errorf("%d configs differ, want %d", len(seen), want)
	}
}

// A connection may turn out to be closed long after a reload: when the answer is
// whole that was under way on it.
func TestConnectionsOfAnOldConfigAreOutdated(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	s := &stage{reloads: []span{{at(10), at(12)}, {at(20), time.Time{}}}}
	for seconds, want := range map[int]bool{5: true, 11: true, 13: true} {
		if got := s.outdated(at(seconds)); got != want {
			t.Errorf("a connection made at %d: outdated %v, want %v", seconds, got, want)
		}
	}
	s.reloads[1].to = at(21)
	if s.outdated(at(22)) || s.outdated(time.Time{}) || !s.outdated(at(20)) {
		t.Error("only what was there before the last reload's end is outdated")
	}
}
