package judge

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Metric is what ratios are taken of.
type Metric struct {
	Name string
	Of   func(Score) float64
}

var (
	ttftMean = Metric{"mean TTFT", func(s Score) float64 { return s.Mean }}
	ttftP99  = Metric{"p99 TTFT", func(s Score) float64 { return s.P99 }}
	tpot     = Metric{"mean TPOT", func(s Score) float64 { return s.TPOT }}
)

// place is a cell without its seed.
type place struct {
	Workload string
	Replicas int
	Share    float64
	Variant  string
}

func (p place) String() string {
	s := fmt.Sprintf("%s N=%d u=%.2f", p.Workload, p.Replicas, p.Share)
	if p.Variant != "healthy" {
		s += " " + p.Variant
	}
	return s
}

// ratio is a policy's metric over another's, seed by seed.
type ratio struct {
	place
	value float64 // geometric mean over seeds
}

// ratios of a policy to another in a part, one for each place that both have.
// variant names the variant that the reference is taken from; empty means the
// same.
func ratios(lines []Line, part, policy, reference, variant string, m Metric) []ratio {
	type seeded struct {
		place
		seed uint64
	}
	found := make(map[seeded]Score)
	for _, l := range lines {
		if s, ok := l.Scores[reference]; ok && l.Part == part {
			found[seeded{placeOf(&l), l.Seed}] = s
		}
	}
	logs := make(map[place][]float64)
	var order []place
	for _, l := range lines {
		s, ok := l.Scores[policy]
		if !ok || l.Part != part {
			continue
		}
		at := placeOf(&l)
		from := at
		if variant != "" {
			from.Variant = variant
		}
		ref, ok := found[seeded{from, l.Seed}]
		if !ok || m.Of(ref) <= 0 || m.Of(s) <= 0 {
			continue
		}
		if logs[at] == nil {
			order = append(order, at)
		}
		logs[at] = append(logs[at], math.Log(m.Of(s)/m.Of(ref)))
	}
	var all []ratio
	for _, at := range order {
		all = append(all, ratio{at, math.Exp(mean(logs[at]))})
	}
	return all
}

func placeOf(l *Line) place { return place{l.Workload, l.Replicas, l.Share, l.Variant} }

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}

// geomean of those that match; 0 for none.
func geomean(all []ratio, match func(place) bool) float64 {
	var logs []float64
	for _, r := range all {
		if match(r.place) {
			logs = append(logs, math.Log(r.value))
		}
	}
	if len(logs) == 0 {
		return 0
	}
	return math.Exp(mean(logs))
}

// sizes are the numbers of replicas and shares of a part, in order.
func sizes(lines []Line, part string) [][2]float64 {
	seen := make(map[[2]float64]bool)
	for _, l := range lines {
		if l.Part == part {
			seen[[2]float64{float64(l.Replicas), l.Share}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b [2]float64) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
}

func policies(lines []Line, part string) []string {
	seen := make(map[string]bool)
	var order []string
	for _, p := range append([]string{Us, Greedy, Copying}, all...) {
		for _, l := range lines {
			if _, ok := l.Scores[p]; ok && l.Part == part && !seen[p] {
				seen[p] = true
				order = append(order, p)
			}
		}
	}
	return order
}

// WriteText writes the tables for people, then what must hold.
func (o *Outcome) WriteText(w io.Writer) error {
	if err := o.writeOracle(w); err != nil {
		return err
	}
	if err := o.writeHits(w); err != nil {
		return err
	}
	if err := o.writeRivals(w); err != nil {
		return err
	}
	if err := o.writeVariants(w); err != nil {
		return err
	}
	return o.writeChecks(w)
}

func newTable(w io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// writeOracle has a row for each workload, a pair of columns for each size.
func (o *Outcome) writeOracle(w io.Writer) error {
	means, p99s := ratios(o.Lines, "oracle", Us, Greedy, "", ttftMean), ratios(o.Lines, "oracle", Us, Greedy, "", ttftP99)
	if len(means) == 0 {
		return nil
	}
	fmt.Fprintf(w, "%s, TTFT as a ratio to the greedy oracle's: mean/p99\n\n", Us)
	t := newTable(w)
	o.writeHead(t, "oracle", "workload")
	row := func(name string, match func(place) bool) {
		cols := []string{name}
		for _, s := range sizes(o.Lines, "oracle") {
			at := func(p place) bool { return float64(p.Replicas) == s[0] && p.Share == s[1] && match(p) }
			cols = append(cols, pair(geomean(means, at), geomean(p99s, at)))
		}
		fmt.Fprintln(t, strings.Join(cols, "\t")+"\t")
	}
	for _, x := range workloads {
		row(x.Name, func(p place) bool { return p.Workload == x.Name })
	}
	row("geometric mean", func(place) bool { return true })
	return t.Flush()
}

// writeHead has the name of the rows, and a column for each size of a part.
func (o *Outcome) writeHead(w io.Writer, part, rows string) {
	head := []string{rows}
	for _, s := range sizes(o.Lines, part) {
		head = append(head, fmt.Sprintf("N=%.0f u=%.2f", s[0], s[1]))
	}
	fmt.Fprintln(w, strings.Join(head, "\t")+"\t")
}

// writeHits has a row for each workload: what caches supply.
func (o *Outcome) writeHits(w io.Writer) error {
	all := sizes(o.Lines, "oracle")
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\nprompt tokens from caches, %%: %s/greedy oracle/one cache of infinite size, which begins cold\n\n", Us)
	t := newTable(w)
	o.writeHead(t, "oracle", "workload")
	for _, x := range workloads {
		cols := []string{x.Name}
		for _, s := range all {
			var us, oracle, most []float64
			for i := range o.Lines {
				if l := &o.Lines[i]; l.Part == "oracle" && l.Workload == x.Name && at(placeOf(l), s) {
					us, oracle, most = append(us, l.Scores[Us].Hit), append(oracle, l.Scores[Greedy].Hit), append(most, l.Shareable)
				}
			}
			col := "-"
			if len(us) > 0 {
				col = fmt.Sprintf("%.0f/%.0f/%.0f", 100*mean(us), 100*mean(oracle), 100*mean(most))
			}
			cols = append(cols, col)
		}
		fmt.Fprintln(t, strings.Join(cols, "\t")+"\t")
	}
	return t.Flush()
}

func pair(a, b float64) string {
	if a == 0 || b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f/%.3f", a, b)
}

// writeRivals has a row for each policy: geometric means over workloads.
func (o *Outcome) writeRivals(w io.Writer) error {
	part := "rivals"
	list := policies(o.Lines, part)
	if len(list) == 0 {
		return nil
	}
	fmt.Fprint(w, "\nall policies, geometric means over workloads of ratios to the greedy oracle: mean/p99 TTFT\n\n")
	t := newTable(w)
	o.writeHead(t, part, "policy")
	for _, p := range list {
		means, p99s := ratios(o.Lines, part, p, Greedy, "", ttftMean), ratios(o.Lines, part, p, Greedy, "", ttftP99)
		cols := []string{p}
		for _, s := range sizes(o.Lines, part) {
			at := func(x place) bool { return float64(x.Replicas) == s[0] && x.Share == s[1] }
			cols = append(cols, pair(geomean(means, at), geomean(p99s, at)))
		}
		fmt.Fprintln(t, strings.Join(cols, "\t")+"\t")
	}
	return t.Flush()
}
