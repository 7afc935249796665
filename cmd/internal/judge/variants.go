package judge

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// writeVariants has a row for each thing that can be wrong.
func (o *Outcome) writeVariants(w io.Writer) error {
	for _, part := range []string{"scenarios", "metrics", "capacity", "gateways"} {
		list := policies(o.Lines, part)
		if len(list) == 0 {
			continue
		}
		reference, variant := referenceOf(part)
		fmt.Fprintf(w, "\n%s, mean/p99 TTFT as a ratio to %s: geometric mean, worst mean\n\n", part, strings.TrimSpace(reference+" "+variant))
		t := newTable(w)
		for _, p := range list {
			if p == reference && part != "metrics" && part != "capacity" {
				continue
			}
			means, p99s := ratios(o.Lines, part, p, reference, variant, ttftMean), ratios(o.Lines, part, p, reference, variant, ttftP99)
			for _, v := range variantsOf(means) {
				at := func(x place) bool { return x.Variant == v }
				fmt.Fprintf(t, "%s\t%s\t%s\t%.3f\t\n", p, v, pair(geomean(means, at), geomean(p99s, at)), worst(means, at).value)
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// referenceOf is what a part's ratios are taken to: a policy, in the same
// variant or in a named one.
func referenceOf(part string) (policy, variant string) {
	switch part {
	case "metrics", "capacity":
		return Us, "healthy"
	case "gateways":
		return Greedy, "healthy"
	}
	return Greedy, ""
}

func variantsOf(all []ratio) []string {
	var order []string
	for _, r := range all {
		if !slices.Contains(order, r.Variant) {
			order = append(order, r.Variant)
		}
	}
	return order
}

func worst(all []ratio, match func(place) bool) ratio {
	var w ratio
	for _, r := range all {
		if match(r.place) && r.value > w.value {
			w = r
		}
	}
	return w
}
