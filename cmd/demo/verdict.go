package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/replay"
)

// writeTable prints one line for each policy; engine says what was simulated.
func writeTable(w io.Writer, report *replay.Report, engine string) error {
	fmt.Fprintf(w, "\n%s on %d simulated vLLM servers (%s), cold caches for each policy\n\n", report.Trace, report.Replicas, engine)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\tTTFT mean\tTTFT p99\tcached tokens\trequests per upstream\tfailed\t")
	for i := range report.Results {
		r := &report.Results[i]
		mean, p99 := "-", "-"
		if r.TTFT != nil {
			mean, p99 = fmt.Sprintf("%.0f ms", r.TTFT.Mean), fmt.Sprintf("%.0f ms", r.TTFT.P99)
		}
		var counts []string
		for _, n := range r.RequestsPerUpstream {
			counts = append(counts, strconv.FormatInt(n, 10))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t\n", r.Policy, mean, p99, replay.Ratio(r.CachedTokenRatio), strings.Join(counts, " / "), r.Failed)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nAll clients have one address, as behind a NAT: ip_hash sends them to one server.")
	return err
}

// errSlower: another policy has a lower mean TTFT.
var errSlower = errors.New("slower")

// tries bounds how often is measured.
const tries = 3

// decide measures, and measures all again when all that is wrong is that another
// policy was faster: policies have their turns one after the other, and a machine
// that had something else to do in one of them tells nothing of the policy.
func decide(stderr io.Writer, measure func() ([]replay.Result, error)) (results []replay.Result, missed, err error) {
	for try := 1; ; try++ {
		if results, err = measure(); err != nil {
			return nil, nil, err
		}
		if missed = verdict(results); try == tries || !onlySlower(missed) {
			return results, missed, nil
		}
		fmt.Fprintf(stderr, "%v\nmeasuring again, as the machine may have been busy\n", missed)
	}
}

// onlySlower reports whether there are faults and every one is errSlower, where
// errors.Is would be content with one of those joined.
func onlySlower(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return errors.Is(err, errSlower)
	}
	for _, fault := range joined.Unwrap() {
		if !errors.Is(fault, errSlower) {
			return false
		}
	}
	return true
}

// verdict is nil if the first result has both the best cached-token ratio and
// the lowest mean TTFT, and all requests of all policies succeeded: what failed
// would make the others' times look good.
func verdict(results []replay.Result) error {
	if len(results) < 2 {
		return errors.New("there is nothing to compare with")
	}
	ours := &results[0]
	var faults []error
	for i := range results {
		r := &results[i]
		switch {
		case r.Failed > 0:
			example := ""
			if len(r.Errors) > 0 {
				example = ", as " + r.Errors[0].Class + ": " + r.Errors[0].Example
			}
			faults = append(faults, fmt.Errorf("%s: %d of %d requests failed%s", r.Policy, r.Failed, r.Requests, example))
		case r.TTFT == nil || r.CachedTokenRatio == nil:
			faults = append(faults, fmt.Errorf("%s: no TTFT or no cached tokens were reported", r.Policy))
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	for i := range results[1:] {
		r := &results[1+i]
		if *r.CachedTokenRatio >= *ours.CachedTokenRatio {
			faults = append(faults, fmt.Errorf("%s has a cached-token ratio of %s, %s only %s",
				r.Policy, replay.Ratio(r.CachedTokenRatio), ours.Policy, replay.Ratio(ours.CachedTokenRatio)))
		}
		if r.TTFT.Mean <= ours.TTFT.Mean {
			faults = append(faults, fmt.Errorf("%w: %s has a mean TTFT of %.0f ms, %s one of %.0f ms",
				errSlower, r.Policy, r.TTFT.Mean, ours.Policy, ours.TTFT.Mean))
		}
	}
	return errors.Join(faults...)
}
