package plot

import "strings"

// Point is one of a curve. A curve has a gap where Y is below 0.
type Point struct{ X, Y float64 }

// Curve is a line through points, by X.
type Curve struct {
	Style  int // its place in the legend, or Reference
	Points []Point
}

// Lines is a panel of curves.
type Lines struct {
	Title  string
	X      string  // what X is, with its unit
	LogX   bool    // X is above 0
	Top    float64 // of Y; 0 finds it
	Curves []Curve
}

const linesHeight = 150

func (l *Lines) height() int   { return linesHeight }
func (l *Lines) title() string { return l.Title }

func (l *Lines) draw(c *canvas, top int) {
	x, y := l.axes(top)
	for _, v := range y.tickValues {
		c.add(`<path class="g" d="M%d %.1fH%d"/>`, marginLeft, y.at(v), width-marginRight)
		c.text(marginLeft-6, y.at(v)+4, "end", number(v))
	}
	for _, v := range x.tickValues {
		c.add(`<path class="a" d="M%.1f %dv4"/>`, x.at(v), top+linesHeight)
		c.text(x.at(v), float64(top+linesHeight+16), "middle", number(v))
	}
	c.text(4, float64(top+linesHeight+16), "start", l.X)
	c.add(`<path class="a" d="M%d %dV%dH%d"/>`+"\n", marginLeft, top, top+linesHeight, width-marginRight)
	for _, curve := range l.Curves {
		c.add(`<path class="%s" d="%s"/>`+"\n", class(curve.Style), curve.path(&x, &y))
	}
}

func (l *Lines) axes(top int) (x, y axis) {
	highest, from, to, seen := l.Top, 0.0, 0.0, false
	for _, curve := range l.Curves {
		for _, p := range curve.Points {
			if !seen {
				from, to, seen = p.X, p.X, true
			}
			highest, from, to = max(highest, p.Y), min(from, p.X), max(to, p.X)
		}
	}
	if l.LogX {
		x = logarithmic(from, to, marginLeft, width-marginRight)
	} else {
		x = linear(from, to, marginLeft, width-marginRight, 8)
	}
	return x, linear(0, nice(highest), float64(top+linesHeight), float64(top), 4)
}

// path leaves out points that lie where the last one does.
func (curve *Curve) path(x, y *axis) string {
	var b strings.Builder
	var last Point
	for i, p := range curve.Points {
		if p.Y < 0 {
			continue
		}
		at := Point{x.at(p.X), y.at(p.Y)}
		if b.Len() > 0 && i < len(curve.Points)-1 && at.X-last.X < .5 && at.Y-last.Y < .5 && last.Y-at.Y < .5 {
			continue
		}
		b.WriteString("ML"[min(b.Len(), 1):][:1])
		b.WriteString(pixel(at.X) + " " + pixel(at.Y))
		last = at
	}
	return b.String()
}

// Distribution is the curve of the share, in percent, of sorted values that are
// at most X.
func Distribution(sorted []float64, style int) Curve {
	c := Curve{Style: style}
	const points = 250
	n := len(sorted)
	for i := range min(n, points) {
		at := i
		if n > points {
			at = i * (n - 1) / (points - 1)
		}
		c.Points = append(c.Points, Point{sorted[at], 100 * float64(at+1) / float64(n)})
	}
	return c
}
