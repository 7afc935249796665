package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/gateway"
)

// Bounds of what may be left over.
const (
	goroutinesMore = 20
	heapFactor     = 1.1
	heapMore       = 4 // MiB
)

func heapBound(before gateway.Inside) float64 { return before.Heap*heapFactor + heapMore }

// grade is what became of a request.
type grade string

const (
	served  grade = "served"
	died    grade = "died"    // a stream whose server broke when its client had the header
	wrong   grade = "wrong"   // not the text, or twice, or without its end
	lost    grade = "lost"    // no answer, though a server was well
	unasked grade = "unasked" // no connection to Caddy outside of reloads
)

func (o *outcome) grade(e *end) grade {
	want := o.stage.answers[e.chat]
	switch {
	case e.status == http.StatusOK && e.err == nil && e.whole && e.text == want:
		return served
	case e.status == 0:
		return unasked
	case e.status == http.StatusOK && e.chat.stream && e.err != nil && strings.HasPrefix(want, e.text) && o.broke(e):
		return died
	case e.status == http.StatusOK && e.text != "":
		return wrong
	}
	return lost
}

// broke reports whether the script broke the server of a stream under way.
func (o *outcome) broke(e *end) bool {
	for _, t := range o.script {
		from := o.began.Add(t.at)
		to := from.Add(t.lasts + 2*settle)
		if t.kind.cuts() && o.stage.servers[t.server].address == e.upstream && e.began.Before(to) && e.ended.After(from) {
			return true
		}
	}
	return false
}

// check is a bound and how it was met.
type check struct {
	what string
	got  float64
	most float64
}

func (c check) ok() bool { return c.got <= c.most }

// checks holds the outcome against what must be.
func (o *outcome) checks(grades map[grade]int) []check {
	_, unused := o.stage.o.calm()
	return []check{
		{"requests without an answer that a server could give", float64(grades[lost]), 0},
		{"answers that are wrong, torn or double", float64(grades[wrong]), 0},
		{"requests that got no connection but for a reload", float64(grades[unasked]), 0},
		{"requests in flight in the end, by the policy's gauges", o.inFlight, 0},
		{"panics, ours or Caddy's", o.panics + float64(o.logged), 0},
		{"reloads that came out wrong", float64(len(o.stage.failed)), 0},
		{"servers not in use when all is well", float64(servers - len(o.seen)), float64(unused)},
		{fmt.Sprintf("Caddy's goroutines, %d before", o.before.Goroutines), float64(o.then.Goroutines), float64(o.before.Goroutines + goroutinesMore)},
		{fmt.Sprintf("Caddy's heap, MiB, %.1f before", o.before.Heap), o.then.Heap, heapBound(o.before)},
	}
}

// print writes what happened and a line for each bound, and reports whether all
// were met.
func (o *outcome) print(w io.Writer) bool {
	grades := make(map[grade]int)
	streams, resent, longest := 0, 0, time.Duration(0)
	for i := range o.ends {
		e := &o.ends[i]
		g := o.grade(e)
		grades[g]++
		if e.chat.stream {
			streams++
		}
		resent += e.resent
		longest = max(longest, e.ended.Sub(e.began))
		if g != served && g != died {
			fmt.Fprintf(w, "%s: %+v by %s, %.1fs to %.1fs, status %d, %d bytes of %d: %v\n", g, e.chat, cmp.Or(e.upstream, "nobody"),
				e.began.Sub(o.began).Seconds(), e.ended.Sub(o.began).Seconds(), e.status, len(e.text), len(o.stage.answers[e.chat]), e.err)
		}
	}
	for _, why := range o.stage.failed {
		fmt.Fprintln(w, why)
	}
	kinds := make(map[kind]int)
	for _, t := range o.script {
		kinds[t.kind]++
	}
	var told []string
	for k, n := range kinds {
		told = append(told, fmt.Sprintf("%d %s", n, k))
	}
	slices.Sort(told)
	fmt.Fprintf(w, "\ntrouble: %s\nreloads: %d, and %d refused as they must be\n", strings.Join(told, ", "), len(o.stage.reloads)-o.stage.refused, o.stage.refused)
	fmt.Fprintf(w, "requests: %d, of these %d streamed; %d more were left by their clients\n", len(o.ends), streams, o.left)
	fmt.Fprintf(w, "served: %d; streams that their server's death cut: %d; sent again for a reload: %d; the longest took %.1f s\n", grades[served], grades[died], resent, longest.Seconds())
	fmt.Fprintf(w, "all well again: %d of %d servers in use after %.1f s\n\n", len(o.seen), servers, o.calm.Seconds())
	if o.state != "" {
		fmt.Fprintln(w, o.state)
	}
	fmt.Fprintf(w, "| bound | got | at most | |\n|---|---|---|---|\n")
	all := true
	for _, c := range o.checks(grades) {
		word := "ok"
		if !c.ok() {
			word, all = "MISSED", false
		}
		fmt.Fprintf(w, "| %s | %.4g | %.4g | %s |\n", c.what, c.got, c.most, word)
	}
	return all
}
