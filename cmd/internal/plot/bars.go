package plot

import "strconv"

// Bar is one value with its name. Unknown ones have none.
type Bar struct {
	Name  string
	Value float64
	Known bool
}

// Bars is a panel of horizontal bars.
type Bars struct {
	Title string
	Unit  string  // behind each number
	Top   float64 // 0 finds it
	Mark  float64 // a line that bars are held against; none at 0
	Bars  []Bar
}

const barHeight = 22

func (b *Bars) height() int   { return barHeight * len(b.Bars) }
func (b *Bars) title() string { return b.Title }

func (b *Bars) draw(c *canvas, top int) {
	highest := max(b.Top, b.Mark)
	for _, bar := range b.Bars {
		highest = max(highest, bar.Value)
	}
	const room = 70 // for the number behind the longest
	x := linear(0, max(highest, 1e-9), marginLeft, width-marginRight-room, 4)
	for i, bar := range b.Bars {
		y := float64(top + i*barHeight)
		c.text(marginLeft-6, y+14, "end", bar.Name)
		words := "unknown"
		if bar.Known {
			words = number(bar.Value) + b.Unit
			c.add(`<path class="h" d="M%d %.0fH%.1fv14H%[1]dz"/>`, marginLeft, y+3, x.at(bar.Value))
		}
		c.text(x.at(bar.Value)+5, y+14, "start", words)
		c.add("\n")
	}
	c.add(`<path class="a" d="M%d %dv%d"/>`, marginLeft, top, b.height())
	if b.Mark > 0 {
		c.add(`<path class="a" stroke-dasharray="3 3" d="M%.1f %dv%d"/>`, x.at(b.Mark), top, b.height())
	}
}

func pixel(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
