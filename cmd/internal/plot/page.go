package plot

import (
	"bufio"
	"bytes"
	"html/template"
	"io"
)

// Page is a report that is one file.
type Page struct {
	Title string
	Lead  string // below the title
	Head  []string
	Rows  [][]string // the first column names the row
	Text  string     // preformatted, below the table
	Parts []Figure
	Foot  string
}

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.4rem}figure{margin:1.5rem 0}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #8886;white-space:nowrap}th:first-child{text-align:left}
pre{overflow-x:auto;font-size:12px}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#16181c}}
{{.Style}}
</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
<p>{{.Lead}}</p>
{{if .Rows}}<div class="scroll" tabindex="0" role="region" aria-label="Table of results"><table>
<thead><tr>{{range .Head}}<th scope="col">{{.}}</th>{{end}}</tr></thead>
<tbody>
{{range .Rows}}<tr>{{range $i, $cell := .}}{{if $i}}<td>{{$cell}}</td>{{else}}<th scope="row">{{$cell}}</th>{{end}}{{end}}</tr>
{{end}}</tbody>
</table></div>
{{end}}{{range .Drawn}}<figure>
{{.}}</figure>
{{end}}{{if .Text}}<pre tabindex="0">{{.Text}}</pre>
{{end}}<p>{{.Foot}}</p>
</main>
</body>
</html>
`))

// WriteHTML writes the page with its figures.
func (p *Page) WriteHTML(w io.Writer) error {
	view := struct {
		*Page
		Style template.CSS
		Drawn []template.HTML
	}{Page: p, Style: style}
	for i := range p.Parts {
		var b bytes.Buffer
		c := &canvas{Writer: bufio.NewWriter(&b)}
		p.Parts[i].draw(c, false)
		if err := c.Flush(); err != nil {
			return err
		}
		view.Drawn = append(view.Drawn, template.HTML(b.String())) //nolint:gosec // our own SVG, whose words are escaped
	}
	return pageTemplate.Execute(w, view)
}

// WriteSVG writes the page's figures as one.
func (p *Page) WriteSVG(w io.Writer) error {
	all := Figure{ID: "all", Title: p.Title}
	for _, f := range p.Parts {
		if len(all.Legend) == 0 {
			all.Legend = f.Legend
		}
		if all.Desc != "" {
			all.Desc += " "
		}
		all.Desc += f.Desc
		all.Panels = append(all.Panels, f.Panels...)
	}
	return all.WriteSVG(w)
}
