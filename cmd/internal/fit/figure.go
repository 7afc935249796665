package fit

import (
	"fmt"
	"io"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/plot"
)

// Figure draws the recorded curves and the simulated ones over each other, as
// SVG.
func (r *Run) Figure(w io.Writer, tl *Timeline) error {
	recorded, simulated := r.Curves(tl)
	if len(recorded) < 2 {
		return fmt.Errorf("drawing the figure: %d samples, want 2 or more", len(recorded))
	}
	figure := plot.Figure{
		ID: "fidelity", Title: fmt.Sprintf("%s on %s", or(r.Model), or(r.Device)),
		Desc:   "KV cache usage, running and waiting requests over time, as recorded and as simulated; the closer the two curves, the better.",
		Legend: []plot.Key{{Name: "recorded", Style: plot.Reference}, {Name: "simulated"}},
	}
	for _, p := range []struct {
		name string
		of   func(Point) float64
		top  float64
	}{
		{"KV cache usage, %", func(p Point) float64 { return 100 * p.Usage }, 100},
		{"running requests", func(p Point) float64 { return p.Running }, 0},
		{"waiting requests", func(p Point) float64 { return p.Waiting }, 0},
	} {
		figure.Panels = append(figure.Panels, &plot.Lines{
			Title: p.name, X: "s since arrival", Top: p.top,
			Curves: []plot.Curve{curveOf(recorded, plot.Reference, p.of), curveOf(simulated, 0, p.of)},
		})
	}
	return figure.WriteSVG(w)
}

func curveOf(points []Point, style int, of func(Point) float64) plot.Curve {
	c := plot.Curve{Style: style}
	for _, p := range points {
		c.Points = append(c.Points, plot.Point{X: p.At.Seconds(), Y: of(p)})
	}
	return c
}
