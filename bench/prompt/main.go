// Command prompt compares caddyllm's prompt scanner with JSON libraries that do
// the same job: find the messages of a chat and hash them block by block. It
// prints a table and a line for each bound, and fails if one is missed.
//
// All of them run by turns in one process, and CPU time is compared, not
// elapsed time: what else the machine does slows all of them alike. A ratio is the
// median of those of the rounds. The rounds are those of several such processes, in
// each of which the linker has put functions elsewhere.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
)

func main() {
	data := flag.String("data", "../../shared/data/text", "folder of recorded conversations")
	rounds := flag.Int("rounds", 101, "rounds; each runs everything once, and the median counts")
	layouts := flag.Int("layouts", 5, "programs with other layouts that the rounds are shared by; 0 runs them all in this one")
	raw := flag.Bool("raw", false, "run in this program, and print nothing but what each took, as JSON")
	flag.Parse()
	ok, err := run(*data, *rounds, *layouts, *raw)
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench-prompt: %v\n", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

func run(data string, rounds, layouts int, raw bool) (bool, error) {
	all, err := contestants(data)
	if err != nil && !raw {
		fmt.Printf("recorded conversations: not measured: %v\n\n", err)
	}
	switch {
	case raw:
		measure(all, rounds)
		return true, printRaw(all)
	case layouts > 0:
		if err := measureInLayouts(all, data, rounds, layouts); err != nil {
			return false, err
		}
	default:
		measure(all, rounds)
	}
	table(all)
	return bounds(all), nil
}

// contestants are in the order in which they run: what is compared runs one after
// the other, since how fast the machine is changes with what else it does. An error
// says why there are no recorded bodies.
func contestants(data string) ([]*series, error) {
	bodies := []body{{"32 KB chat", chatOf(32<<10, 1), asked}}
	real, err := recorded(data)
	bodies = append(bodies, real...)
	bodies = append(bodies, body{"32 KB of an agent", agentOf(32 << 10), 1}, body{"32 KB in escapes", asciiOf(32 << 10), 1})
	var all []*series
	for _, b := range bodies {
		all = append(all, newSeries("scanner", b, scan(true)))
		for _, r := range rivals {
			all = append(all, newSeries(r.name, b, r.run))
		}
	}

	// These are compared with each other only.
	long := chatOf(1<<20, 1)
	var chats [][]byte
	for i := range uint64(32) {
		chats = append(chats, chatOf(32<<10, i+1))
	}
	return append(all,
		newSeries("scanner", body{"1 MB chat", long, asked}, scan(true)),
		newSeries("scanner", body{"10 MB with an image", imageOf(10 << 20), asked}, scan(true)),
		newSeries("scanner", body{"half of the 1 MB chat", long[:len(long)/2], asked}, scan(false)),
		newSeries("scanner", body{different, bytes.Join(chats, nil), asked}, scanEach(chats)),
	), err
}

func table(all []*series) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "body\tbytes\tby\tµs of CPU\tMB/s\tallocations\tscanner is faster by\t")
	for _, s := range all {
		factor := ""
		if own := find(all, "scanner", s.body.name); own != s {
			factor = fmt.Sprintf("%.1f×", s.against(own))
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%.1f\t%.0f\t%.0f\t%s\t\n", s.body.name, len(s.body.text), s.by, s.median()/1e3, s.rate(), s.allocs, factor)
	}
	_ = w.Flush()
	fmt.Println()
}

// different chats are what a longer one is compared with: what branches one chat
// takes the processor has learnt after some rounds, if it isn't long.
const different = "32 chats of 32 KB by turns"

// bounds prints what was asked for, and whether it was reached.
func bounds(all []*series) bool {
	own := find(all, "scanner", different)
	reached := true
	say := func(ok bool, format string, args ...any) {
		word := "ok    "
		if !ok {
			word, reached = "MISSED", false
		}
		fmt.Println(word, fmt.Sprintf(format, args...))
	}
	for _, s := range all {
		if s.by == "scanner" {
			say(s.allocs == 0, "%s: %.0f allocations, at most 0", s.body.name, s.allocs)
			continue
		}
		least := 1.0
		if s.by == decodeOnly {
			least = s.body.goal
		}
		f := s.against(find(all, "scanner", s.body.name))
		say(f >= least, "%s: %.1f times as fast as %s, at least %.0f", s.body.name, f, s.by, least)
	}
	for _, name := range []string{"1 MB chat", "10 MB with an image", "half of the 1 MB chat"} {
		// Equal is what is asked for, and a tenth is within the noise of it.
		f := own.perByte(find(all, "scanner", name))
		say(f >= 0.9, "%s: %.2f times the bytes per second of %s, at least 1 less a tenth of noise", name, f, different)
	}
	return reached
}
