package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/replay"
)

// What must hold. See docs/fidelity.md for what was measured.
const (
	// leastOfPinned is how much of what pinned conversations find in the cache
	// llm_prefix must find.
	leastOfPinned = 0.95
	// mostOff bounds the gap between predicted and actual cached tokens, as a
	// share of the actual.
	mostOff = 0.05
)

// counters asks each server for its metrics.
func counters(ctx context.Context, servers []*server) ([]gauges, error) {
	var all []gauges
	for _, v := range servers {
		text, err := page(ctx, v.address)
		if err != nil {
			return nil, err
		}
		all = append(all, readGauges(text))
	}
	return all, nil
}

func (g gauges) finished() float64 {
	sum := 0.0
	for _, n := range g.Finished {
		sum += n
	}
	return sum
}

// predictions reads from the gateway's metrics how many prompt tokens it said
// would be cached, and how many were.
func predictions(ctx context.Context, address string) (predicted, cached *float64, err error) {
	text, err := page(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	const name = "caddy_llm_prefix_prompt_tokens_total"
	for line := range strings.Lines(text) {
		m := sampleLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || m[1] != name {
			continue
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the gateway's metrics: %w", err)
		}
		switch m[2] {
		case `{kind="predicted_cached"}`:
			predicted = &v
		case `{kind="cached"}`:
			cached = &v
		}
	}
	if predicted == nil || cached == nil {
		return nil, nil, errors.New("reading the gateway's metrics: no " + name)
	}
	return predicted, cached, nil
}

func (c *comparison) table(w io.Writer, outcomes []outcome) error {
	fmt.Fprintf(w, "\nconversations on %d vLLM %s servers (CPU, a random model), %d KV blocks of %d tokens each, emptied before each replay\n\n",
		c.servers, c.version, c.blocks-1, blockSize)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\tcached tokens\tservers' hits/queries\tpredicted/actual cached\tTTFT mean\trequests per server\tfailed\t")
	for i := range outcomes {
		o := &outcomes[i]
		ttft, gap := "-", "-"
		if o.TTFT != nil {
			ttft = fmt.Sprintf("%.0f ms", o.TTFT.Mean)
		}
		if o.Predicted != nil {
			gap = fmt.Sprintf("%.0f / %.0f", *o.Predicted, *o.Cached)
		}
		var counts []string
		for _, n := range o.RequestsPerUpstream {
			counts = append(counts, strconv.FormatInt(n, 10))
		}
		fmt.Fprintf(t, "%s\t%s\t%.0f / %.0f\t%s\t%s\t%s\t%d\t\n", o.Policy, replay.Ratio(o.CachedTokenRatio),
			o.ServerHits, o.ServerQueries, gap, ttft, strings.Join(counts, " / "), o.Failed)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// judge prints a line for each bound and fails if one is missed.
func judge(w io.Writer, outcomes []outcome, quiet bool) error {
	missed := 0
	check := func(ok bool, format string, args ...any) {
		word := "ok    "
		if !ok {
			word = "MISSED"
			missed++
		}
		if !quiet {
			fmt.Fprintf(w, "%s %s\n", word, fmt.Sprintf(format, args...))
		}
	}
	by := make(map[string]*outcome)
	for i := range outcomes {
		by[outcomes[i].Policy] = &outcomes[i]
		if outcomes[i].CachedTokenRatio == nil {
			return fmt.Errorf("%s: no cached tokens were reported", outcomes[i].Policy)
		}
	}
	ratio := func(name string) float64 { return *by[name].CachedTokenRatio }
	check(ratio(ours) >= leastOfPinned*ratio(pinned), "%s's cached-token ratio is %.3f of that of pinned conversations, at least %.2f",
		ours, ratio(ours)/ratio(pinned), leastOfPinned)
	for _, p := range policies[1:] {
		check(ratio(ours) > ratio(p), "%s's cached-token ratio is %.3f, above %s's %.3f", ours, ratio(ours), p, ratio(p))
	}
	off := *by[ours].Predicted / *by[ours].Cached - 1
	check(off <= mostOff && off >= -mostOff, "predicted cached tokens are %+.1f %% off the actual, within %.0f %%", 100*off, 100*mostOff)
	for i := range outcomes {
		if o := &outcomes[i]; o.Policy != killed {
			check(o.Failed == 0, "%s: %d failed of %d requests, none may", o.Policy, o.Failed, o.Requests)
		}
	}
	k := by[killed]
	check(k.Lost == 0 && k.Waiting > 0, "a server killed while the answers of %d requests to it had not begun: %d of %d requests failed before theirs did, none may (%d failed in mid-answer)",
		k.Waiting, k.Lost, k.Requests, k.Failed-k.Lost)
	if missed > 0 {
		return fmt.Errorf("%d bounds are missed", missed)
	}
	return nil
}
