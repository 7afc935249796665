// Command proxy compares requests through Caddy with lb_policy llm_prefix and
// with lb_policy random: chats of 32 KB, over kept connections, by turns in one
// run. It prints a table and a line for each bound, and fails if one is missed.
//
// Caddy is a process of its own, so that its CPU time is its own; clients and
// upstreams are in this one, and the same for both.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

func main() {
	caddy := flag.String("caddy", "../bin/caddy", "the binary to be measured")
	rounds := flag.Int("rounds", 11, "rounds; the medians count")
	slice := flag.Duration("slice", time.Second, "how long each policy runs in a round")
	clients := flag.Int("clients", 16, "connections")
	flag.Parse()
	ok, err := run(*caddy, *rounds, *slice, *clients)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// sample is one slice of one policy.
type sample struct {
	rate float64 // requests per second
	cpu  float64 // µs of Caddy per request
}

// policies are measured in this order. The first is measured twice, which shows
// how much of a difference is noise.
var policies = []string{"random", "llm_prefix", "random, again"}

func run(binary string, rounds int, slice time.Duration, clients int) (bool, error) {
	ups, stop, err := upstreams(3)
	if err != nil {
		return false, err
	}
	defer stop()
	c, err := start(binary, ups)
	if err != nil {
		return false, err
	}
	defer c.stop()

	samples := make([][]sample, len(policies))
	for round := range rounds + 1 {
		for i := range policies {
			s, err := c.measure(c.site(i), slice, clients)
			if err != nil {
				return false, err
			}
			if round > 0 { // the first warms up
				samples[i] = append(samples[i], s)
			}
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "lb_policy\trequests/s\tµs of CPU each\trate to random's\tCPU to random's\t")
	var rate, cpu float64
	for i, name := range policies {
		r, u := medians(samples[i], samples[0])
		fmt.Fprintf(w, "%s\t%.0f\t%.1f\t%.3f\t%.3f\t\n", name,
			median(samples[i], func(s sample) float64 { return s.rate }), median(samples[i], func(s sample) float64 { return s.cpu }), r, u)
		if i == 1 {
			rate, cpu = r, u
		}
	}
	_ = w.Flush()
	fmt.Printf("medians of %d rounds of %v, %d connections, %d processors\n\n", rounds, slice, clients, runtime.NumCPU())
	good := say(rate >= 0.92, "%.3f of the requests per second of lb_policy random, at least 0.92", rate)
	return say(cpu <= 1.15, "%.3f times its CPU per request, at most 1.15", cpu) && good, nil
}

func say(ok bool, format string, args ...any) bool {
	word := "ok    "
	if !ok {
		word = "MISSED"
	}
	fmt.Println(word, fmt.Sprintf(format, args...))
	return ok
}

func median(all []sample, of func(sample) float64) float64 {
	v := make([]float64, len(all))
	for i, s := range all {
		v[i] = of(s)
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// medians are those of the ratios round by round, since what else the machine
// does changes from round to round.
func medians(own, random []sample) (rate, cpu float64) {
	ratios := make([]sample, len(own))
	for i := range own {
		ratios[i] = sample{own[i].rate / random[i].rate, own[i].cpu / random[i].cpu}
	}
	return median(ratios, func(s sample) float64 { return s.rate }), median(ratios, func(s sample) float64 { return s.cpu })
}
