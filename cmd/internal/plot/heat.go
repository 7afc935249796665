package plot

import (
	"fmt"
	"math"
)

// Heat is a panel with a row for each name and a column for each span of X; the
// darker a cell on a light page, the larger its value.
type Heat struct {
	Title string
	X     string // what X is, with its unit
	To    float64
	Top   float64 // the value of the darkest
	Unit  string
	Names []string
	Rows  [][]float64 // as many columns in each
}

// Rows shrink where there are many.
const (
	heatRow    = 16
	heatHeight = 16 * heatRow
	heatLevels = 20
	namedRow   = 11 // the least that has room for its name
)

func (h *Heat) row() float64 { return min(heatRow, heatHeight/float64(max(len(h.Rows), 1))) }

func (h *Heat) height() int { return int(math.Ceil(h.row() * float64(len(h.Rows)))) }
func (h *Heat) title() string {
	return fmt.Sprintf("%s; full colour is %s%s", h.Title, number(h.Top), h.Unit)
}

func (h *Heat) draw(c *canvas, top int) {
	x := linear(0, h.To, marginLeft, width-marginRight, 8)
	for i, row := range h.Rows {
		y := float64(top) + float64(i)*h.row()
		if h.row() >= namedRow {
			c.text(marginLeft-6, y+h.row()/2+4, "end", h.Names[i])
		}
		cell := (x.high - x.low) / float64(max(len(row), 1))
		for from := 0; from < len(row); {
			to, level := from+1, h.level(row[from])
			for to < len(row) && h.level(row[to]) == level {
				to++
			}
			if level > 0 {
				c.add(`<path class="h e" fill-opacity="%s" d="M%s %sh%sv%sh-%[4]sz"/>`, number(float64(level)/heatLevels),
					pixel(x.low+cell*float64(from)), pixel(y), pixel(cell*float64(to-from)), pixel(h.row()))
			}
			from = to
		}
		c.add("\n")
	}
	for _, v := range x.tickValues {
		c.text(x.at(v), float64(top+h.height()+16), "middle", number(v))
	}
	c.text(4, float64(top+h.height()+16), "start", h.X)
	c.add(`<path class="a" d="M%d %dh%dv%dH%[1]dz"/>`, marginLeft, top, width-marginRight-marginLeft, h.height())
}

func (h *Heat) level(v float64) int {
	if !(v > 0) || h.Top <= 0 {
		return 0
	}
	return min(max(int(math.Round(v/h.Top*heatLevels)), 1), heatLevels)
}
