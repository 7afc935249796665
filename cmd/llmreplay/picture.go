package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/plot"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/replay"
)

// picture holds the flags of commands that draw what they found.
type picture struct{ html, svg string }

func (p *picture) addFlags(f *pflag.FlagSet) {
	f.StringVar(&p.html, "html", "", "write a page with table and figures to this file; it needs nothing else to be read")
	f.StringVar(&p.svg, "svg", "", "write the figures alone to this file")
}

// write writes the files that were asked for. make is only called if any was.
func (p *picture) write(make func() *plot.Page) error {
	if p.html == "" && p.svg == "" {
		return nil
	}
	page := make()
	for _, f := range []struct {
		path  string
		write func(io.Writer) error
	}{{p.html, page.WriteHTML}, {p.svg, page.WriteSVG}} {
		if f.path == "" {
			continue
		}
		if err := create(f.path, f.write); err != nil {
			return fmt.Errorf("drawing the figures: %w", err)
		}
	}
	return nil
}

// create writes a file.
func create(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// stay is when a request was in flight, and where.
type stay struct {
	upstream  string
	sent, end time.Duration
}

// sight is what is drawn of one policy.
type sight struct {
	result *replay.Result
	ttft   []float64 // ms, sorted
	stays  []stay
}

// comparison draws policies beside each other.
func comparison(all []sight) []plot.Figure {
	ttft := plot.Figure{
		ID: "ttft", Title: "Time to first token",
		Desc: "For each policy the share of requests whose first token had come after a time. The further left and up a curve, the better.",
	}
	lines := &plot.Lines{Title: "share of requests, %", X: "ms", LogX: true, Top: 100}
	hits := &plot.Bars{Title: "share of prompt tokens", Unit: " %", Top: 100}
	for i, s := range all {
		ttft.Legend = append(ttft.Legend, plot.Key{Name: s.result.Policy, Style: i})
		lines.Curves = append(lines.Curves, plot.Distribution(s.ttft, i))
		bar := plot.Bar{Name: s.result.Policy}
		if r := s.result.CachedTokenRatio; r != nil {
			bar.Value, bar.Known = 100**r, true
		}
		hits.Bars = append(hits.Bars, bar)
	}
	ttft.Panels = []plot.Panel{lines}
	figures := []plot.Figure{ttft, {
		ID: "hits", Title: "Prompt tokens from the prefix cache", Panels: []plot.Panel{hits},
		Desc: "For each policy the share of prompt tokens that prefix caches supplied. More is better.",
	}}
	load := plot.Figure{
		ID: "load", Title: "Requests in flight at each upstream",
		Desc: "For each policy a row for each upstream: the stronger the colour, the more requests were in flight there. Even rows are an even load.",
	}
	for _, h := range heats(all) {
		load.Panels = append(load.Panels, h)
	}
	if len(load.Panels) > 0 {
		figures = append(figures, load)
	}
	return figures
}

// loadColumns is how many spans of time the load is drawn in.
const loadColumns = 80

// heats are the loads of all policies, each on a scale of its own: next to one
// that is overloaded the others would be pale.
func heats(all []sight) (panels []*plot.Heat) {
	for _, s := range all {
		var end time.Duration
		names := make(map[string]int)
		for _, x := range s.stays {
			end = max(end, x.end)
			names[x.upstream] = 0
		}
		if end <= 0 {
			continue
		}
		h := &plot.Heat{Title: s.result.Policy, X: "s", Unit: " requests", To: end.Seconds(), Names: slices.SortedFunc(maps.Keys(names), byNumber)}
		for i, name := range h.Names {
			names[name] = i
			h.Rows = append(h.Rows, make([]float64, loadColumns))
		}
		for _, x := range s.stays {
			spread(h.Rows[names[x.upstream]], x, end)
		}
		for _, row := range h.Rows {
			h.Top = max(h.Top, thousandths(slices.Max(row)))
		}
		panels = append(panels, h)
	}
	return panels
}

// spread adds a stay to the means of the columns that it touches.
func spread(row []float64, x stay, end time.Duration) {
	column := float64(end) / float64(len(row))
	from, to := float64(x.sent)/column, float64(x.end)/column
	for i := int(from); i < len(row) && float64(i) < to; i++ {
		row[i] += min(to, float64(i+1)) - max(from, float64(i))
	}
}

// byNumber orders names that are numbers as such, others as text.
func byNumber(a, b string) int {
	n, errN := strconv.Atoi(a)
	m, errM := strconv.Atoi(b)
	if errN == nil && errM == nil {
		return n - m
	}
	if a < b {
		return -1
	}
	return 1
}

// resultsTable is the table of a page.
func resultsTable(results []replay.Result) (head []string, rows [][]string) {
	head = []string{"policy", "requests", "failed", "TTFT mean", "p50", "p90", "p99", "TPOT mean", "e2e mean", "cached", "imbalance"}
	one := func(d *replay.Distribution, of func(*replay.Distribution) float64) string {
		if d == nil {
			return "unknown"
		}
		return fmt.Sprintf("%.1f ms", of(d))
	}
	mean := func(d *replay.Distribution) float64 { return d.Mean }
	for i := range results {
		r := &results[i]
		imbalance := "unknown"
		if r.LoadImbalance != nil {
			imbalance = fmt.Sprintf("%.2f", *r.LoadImbalance)
		}
		rows = append(rows, []string{
			r.Policy, strconv.Itoa(r.Requests), strconv.Itoa(r.Failed), one(r.TTFT, mean),
			one(r.TTFT, func(d *replay.Distribution) float64 { return d.P50 }),
			one(r.TTFT, func(d *replay.Distribution) float64 { return d.P90 }),
			one(r.TTFT, func(d *replay.Distribution) float64 { return d.P99 }),
			one(r.TPOT, mean), one(r.E2E, mean), replay.Ratio(r.CachedTokenRatio), imbalance,
		})
	}
	return head, rows
}
