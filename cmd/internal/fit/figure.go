package fit

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// Size of a figure, in pixels.
const (
	figureWidth  = 800
	panelHeight  = 150
	panelGap     = 44
	marginLeft   = 52
	marginRight  = 16
	marginTop    = 56
	marginBottom = 40
)

// figureStyle holds up on a light and on a dark page.
const figureStyle = `text{font:12px system-ui,sans-serif;fill:#333}.t{font-weight:600}.a{stroke:#999;stroke-width:1;fill:none}` +
	`.r{stroke:#777;stroke-width:3.5;fill:none;stroke-opacity:.55}.s{stroke:#0b62c4;stroke-width:1.4;fill:none}` +
	`@media(prefers-color-scheme:dark){text{fill:#ccc}.a{stroke:#666}.r{stroke:#aaa}.s{stroke:#6db3ff}}`

// Figure draws the recorded curves and the simulated ones over each other, as
// SVG.
func (r *Run) Figure(w io.Writer, tl *Timeline) error {
	recorded, simulated := r.Curves(tl)
	if len(recorded) < 2 {
		return fmt.Errorf("drawing the figure: %d samples, want 2 or more", len(recorded))
	}
	panels := []panel{
		{"KV cache usage, %", func(p Point) float64 { return 100 * p.Usage }, 100},
		{"running requests", func(p Point) float64 { return p.Running }, 0},
		{"waiting requests", func(p Point) float64 { return p.Waiting }, 0},
	}
	height := marginTop + len(panels)*(panelHeight+panelGap) - panelGap + marginBottom
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img"><title>%s</title><style>%s</style>`+"\n",
		figureWidth, height, escape(r.title()), figureStyle)
	fmt.Fprintf(b, `<text class="t" x="%d" y="18">%s</text>`+"\n", marginLeft, escape(r.title()))
	fmt.Fprintf(b, `<path class="r" d="M%d 34h24"/><text x="%d" y="38">recorded</text><path class="s" d="M%d 34h24"/><text x="%d" y="38">simulated</text>`+"\n",
		marginLeft, marginLeft+30, marginLeft+110, marginLeft+140)
	from, to := recorded[0].At.Seconds(), recorded[len(recorded)-1].At.Seconds()
	for i, p := range panels {
		p.draw(b, marginTop+i*(panelHeight+panelGap), from, to, recorded, simulated)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">s since the first arrival</text></svg>`+"\n", figureWidth-marginRight, height-4)
	return b.Flush()
}

func (r *Run) title() string { return fmt.Sprintf("%s on %s", or(r.Model), or(r.Device)) }

func escape(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		return ""
	}
	return b.String()
}

// panel is one pair of curves. A top of 0 is found from the data.
type panel struct {
	name string
	of   func(Point) float64
	top  float64
}

func (p panel) draw(b *bufio.Writer, y int, from, to float64, curves ...[]Point) {
	top := p.top
	for _, curve := range curves {
		for _, point := range curve {
			top = max(top, p.of(point))
		}
	}
	top = nice(top)
	width := float64(figureWidth - marginLeft - marginRight)
	px := func(t float64) float64 { return marginLeft + (t-from)/(to-from)*width }
	py := func(v float64) float64 { return float64(y) + panelHeight*(1-v/top) }
	fmt.Fprintf(b, `<text class="t" x="%d" y="%d">%s</text>`, marginLeft, y-6, escape(p.name))
	fmt.Fprintf(b, `<path class="a" d="M%d %dV%dH%d"/>`, marginLeft, y, y+panelHeight, figureWidth-marginRight)
	for _, v := range []float64{0, top / 2, top} {
		fmt.Fprintf(b, `<text x="%d" y="%.0f" text-anchor="end">%g</text>`, marginLeft-6, py(v)+4, v)
	}
	step := nice((to - from) / 8)
	for t := math.Ceil(from/step) * step; t <= to; t += step {
		fmt.Fprintf(b, `<text x="%.0f" y="%d" text-anchor="middle">%g</text>`, px(t), y+panelHeight+15, t)
	}
	b.WriteByte('\n')
	for i, curve := range curves {
		var path strings.Builder
		for _, point := range curve {
			v := p.of(point)
			if v < 0 {
				continue
			}
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(path.Len(), 1)], px(point.At.Seconds()), py(v))
		}
		fmt.Fprintf(b, `<path class="%s" d="%s"/>`+"\n", []string{"r", "s"}[i], path.String())
	}
}

// nice is the next round number.
func nice(x float64) float64 {
	if x <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 2.5, 4, 5, 8} {
		if x <= m*power {
			return m * power
		}
	}
	return 10 * power
}
