// Package plot draws figures as SVG, and pages of them as HTML. A figure holds
// up on light and dark pages, asks nothing of elsewhere, and tells in words what
// it shows.
//
// figure.go is the frame, lines.go, bars.go and heat.go the kinds of panels,
// axis.go finds round numbers, page.go makes pages.
package plot

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// Sizes in pixels.
const (
	width        = 800
	marginLeft   = 120
	marginRight  = 16
	legendHeight = 22
	panelGap     = 46
	bottom       = 12
)

// Figure is one or more panels below each other.
type Figure struct {
	ID     string // unlike those of other figures on a page
	Title  string
	Desc   string // what one is to see in it, for those who can't
	Legend []Key
	Panels []Panel
}

// Key tells what the curves of a style are.
type Key struct {
	Name  string
	Style int
}

// Panel is a part of a figure that has a title of its own.
type Panel interface {
	// height is that of the panel's own area, below its title.
	height() int
	title() string
	// draw draws the area and what stands round it.
	draw(c *canvas, top int)
}

// style holds up on a light and on a dark page. Curves differ by colour, and by
// dashes for those who don't see it; the colours are Okabe and Ito's.
const style = `svg{max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#333}svg .t{font-weight:600}` +
	`.a{stroke:#999;fill:none}.g{stroke:#8884;fill:none}` +
	`.c{stroke-width:1.8;fill:none}.h{fill:#0072b2}.e{shape-rendering:crispEdges}.r{stroke:#777;stroke-width:3.5;stroke-opacity:.55;fill:none}` +
	`.c0{stroke:#0072b2}.c1{stroke:#d55e00;stroke-dasharray:7 3}.c2{stroke:#009e73;stroke-dasharray:2 3}.c3{stroke:#aa4499;stroke-dasharray:9 3 2 3}` +
	`.c4{stroke:#b07d00;stroke-dasharray:4 2}.c5{stroke:#56a0d3;stroke-dasharray:12 4}.c6{stroke:#777;stroke-dasharray:1 2}.c7{stroke:#444;stroke-dasharray:6 2 1 2 1 2}` +
	`@media(prefers-color-scheme:dark){svg text{fill:#ccc}.a{stroke:#666}.h{fill:#56b4e9}.r{stroke:#aaa}` +
	`.c0{stroke:#56b4e9}.c1{stroke:#ff9d5c}.c2{stroke:#3fd9ae}.c3{stroke:#e08bd0}.c4{stroke:#f0e442}.c5{stroke:#9ecbff}.c6{stroke:#aaa}.c7{stroke:#ddd}}`

// styles is how many curves look unlike each other.
const styles = 8

// Reference is the style of a curve that others are held against.
const Reference = -1

func class(style int) string {
	if style == Reference {
		return "r"
	}
	return fmt.Sprintf("c c%d", style%styles)
}

// WriteSVG writes the figure as a file of its own.
func (f *Figure) WriteSVG(w io.Writer) error {
	c := &canvas{Writer: bufio.NewWriter(w)}
	f.draw(c, true)
	return c.Flush()
}

// canvas takes SVG. Errors of its writer are kept for Flush.
type canvas struct{ *bufio.Writer }

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(c, format, args...) }

// text writes words at a point. anchor is start, middle or end.
func (c *canvas) text(x, y float64, anchor, words string) {
	c.add(`<text x="%.0f" y="%.0f" text-anchor="%s">%s</text>`, x, y, anchor, escape(words))
}

func (f *Figure) draw(c *canvas, alone bool) {
	// A row of the legend takes as many names as fit.
	rows := legend(f.Legend)
	top := 30 + len(rows)*legendHeight
	height := top
	for _, p := range f.Panels {
		height += panelGap + p.height()
	}
	height += bottom
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="%s-t %[3]s-d">`+"\n", width, height, escape(f.ID))
	c.add(`<title id="%s-t">%s</title><desc id="%[1]s-d">%s</desc>`+"\n", escape(f.ID), escape(f.Title), escape(f.Desc))
	if alone {
		c.add("<style>%s</style>\n", style)
	}
	c.add(`<text class="t" x="4" y="18">%s</text>`+"\n", escape(f.Title))
	for i, row := range rows {
		y := 30 + i*legendHeight
		for _, k := range row {
			c.add(`<path class="%s" d="M%d %dh28"/>`, class(k.Style), k.x, y+10)
			c.text(float64(k.x+34), float64(y+14), "start", k.Name)
		}
		c.add("\n")
	}
	for _, p := range f.Panels {
		top += panelGap - 18
		c.add(`<text class="t" x="%d" y="%d">%s</text>`+"\n", marginLeft, top-6, escape(p.title()))
		p.draw(c, top)
		c.add("\n")
		top += p.height() + 18
	}
	c.add("</svg>\n")
}

type placedKey struct {
	Key
	x int
}

// legend places keys in rows.
func legend(keys []Key) (rows [][]placedKey) {
	x := width
	for _, k := range keys {
		room := 34 + 8*len(k.Name) + 20
		if x+room > width {
			x, rows = marginLeft, append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], placedKey{k, x})
		x += room
	}
	return rows
}

func escape(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		return ""
	}
	return b.String()
}
