package judge

import (
	"fmt"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/plot"
)

// Figures draw what the tables say, as far as it was run.
func (o *Outcome) Figures() []plot.Figure {
	var all []plot.Figure
	for _, f := range []plot.Figure{o.oracleFigure(), o.rivalsFigure()} {
		if len(f.Panels) > 0 {
			all = append(all, f)
		}
	}
	return all
}

// oracleFigure has a panel for each size, and a bar for each workload; a second
// one for the best rival, where rivals were run on the same cells.
func (o *Outcome) oracleFigure() plot.Figure {
	f := plot.Figure{
		ID: "oracle", Title: "Mean TTFT of " + Us + " as a ratio to the greedy oracle's",
		Desc: "For each number of replicas and share of the knee a bar for each workload, and one for the rival that is best there, where any was run; 1, the dashed line, is as good as the oracle, less is better.",
	}
	means := ratios(o.Lines, "oracle", Us, Greedy, "", ttftMean)
	for _, s := range sizes(o.Lines, "oracle") {
		panel := sizePanel(s)
		for i := range workloads {
			name := workloads[i].Name
			here := func(p place) bool { return at(p, s) && p.Workload == name }
			v := geomean(means, here)
			if v == 0 {
				continue // not run
			}
			panel.Bars = append(panel.Bars, bar(name, v))
			if rival, v := o.bestRival("oracle", here); v > 0 {
				panel.Bars = append(panel.Bars, bar(rival, v))
			}
		}
		panel.Bars = append(panel.Bars, bar("geometric mean", geomean(means, func(p place) bool { return at(p, s) })))
		f.Panels = append(f.Panels, panel)
	}
	return f
}

// bestRival is the one with the least ratio to the greedy oracle in the places
// that match; 0 without any.
func (o *Outcome) bestRival(part string, match func(place) bool) (name string, ratio float64) {
	for _, policy := range policies(o.Lines, part) {
		if policy == Us || policy == Greedy || policy == Copying {
			continue
		}
		if v := geomean(ratios(o.Lines, part, policy, Greedy, "", ttftMean), match); v > 0 && (ratio == 0 || v < ratio) {
			name, ratio = policy, v
		}
	}
	return name, ratio
}

// rivalsFigure has a panel for each size, and a bar for each policy.
func (o *Outcome) rivalsFigure() plot.Figure {
	f := plot.Figure{
		ID: "rivals", Title: "Mean TTFT of all policies as a ratio to the greedy oracle's",
		Desc: "For each number of replicas and share of the knee a bar for each policy, the geometric mean over workloads; less is better.",
	}
	for _, s := range sizes(o.Lines, "rivals") {
		panel := sizePanel(s)
		for _, policy := range policies(o.Lines, "rivals") {
			means := ratios(o.Lines, "rivals", policy, Greedy, "", ttftMean)
			panel.Bars = append(panel.Bars, bar(policy, geomean(means, func(p place) bool { return at(p, s) })))
		}
		f.Panels = append(f.Panels, panel)
	}
	return f
}

func sizePanel(s [2]float64) *plot.Bars {
	return &plot.Bars{Title: fmt.Sprintf("%.0f replicas, %.0f %% of the knee", s[0], 100*s[1]), Mark: 1}
}

func at(p place, s [2]float64) bool { return float64(p.Replicas) == s[0] && p.Share == s[1] }

func bar(name string, v float64) plot.Bar { return plot.Bar{Name: name, Value: v, Known: v > 0} }
