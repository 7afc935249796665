package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s (-update writes it anew)", path)
	}
}

func example() *Page {
	return &Page{
		Title: "Policies on <trace> & co", Lead: "8 replicas", Head: []string{"policy", "mean"},
		Rows: [][]string{{"llm_prefix", "40.1"}, {"a<b", "80"}}, Text: "x < y", Foot: "made by llmreplay",
		Parts: []Figure{
			{ID: "ttft", Title: "TTFT", Desc: "Less is better.", Legend: []Key{{"llm_prefix", 0}, {"round_robin", 1}, {"recorded", Reference}}, Panels: []Panel{
				&Lines{Title: "share of requests, %", X: "ms", LogX: true, Top: 100, Curves: []Curve{
					Distribution([]float64{1, 2, 3, 10, 500}, 0), Distribution([]float64{4, 8, 16, 2000}, 1),
					{Style: Reference, Points: []Point{{1, 0}, {2, -1}, {2000, 100}}},
				}},
			}},
			{ID: "hits", Title: "Hits", Desc: "More is better.", Panels: []Panel{
				&Bars{Title: "cached, %", Unit: " %", Top: 100, Mark: 90, Bars: []Bar{{"llm_prefix", 87.1, true}, {"live", 0, false}}},
			}},
			{ID: "load", Title: "Load", Desc: "Even rows are good.", Panels: []Panel{
				&Heat{Title: "in flight", X: "s", To: 10, Top: 8, Names: []string{"0", "1"}, Rows: [][]float64{{0, 1, 1, 8}, {4, 4, 9, 0}}},
			}},
		},
	}
}

func TestPageAndFigures(t *testing.T) {
	var page, svg bytes.Buffer
	if err := example().WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	if err := example().WriteSVG(&svg); err != nil {
		t.Fatal(err)
	}
	golden(t, "page.html", page.Bytes())
	golden(t, "figures.svg", svg.Bytes())
}

// Each figure is well-formed XML with a title and a description that are named
// to screen readers.
func TestFiguresAreWellFormedAndTitled(t *testing.T) {
	var svg bytes.Buffer
	if err := example().WriteSVG(&svg); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(&svg)
	seen := make(map[string]string)
	labelled := ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range e.Attr {
			switch a.Name.Local {
			case "id":
				seen[a.Value] = e.Name.Local
			case "aria-labelledby":
				labelled = a.Value
			}
		}
	}
	ids := strings.Fields(labelled)
	if len(ids) != 2 || seen[ids[0]] != "title" || seen[ids[1]] != "desc" {
		t.Errorf("labelled by %q; ids are %v", labelled, seen)
	}
}

// A page loads nothing, and all that it holds has an end.
func TestPageIsSelfContained(t *testing.T) {
	var page bytes.Buffer
	if err := example().WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(bytes.NewReader(page.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	ids := make(map[string]bool)
	elements := 0
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		elements++
		if n.Data == "script" || n.Data == "link" || n.Data == "img" || n.Data == "iframe" {
			t.Errorf("the page has an element %s", n.Data)
		}
		for _, a := range n.Attr {
			if a.Key == "src" || a.Key == "href" {
				t.Errorf("the page refers to %s", a.Val)
			}
			if a.Key == "id" && ids[a.Val] {
				t.Errorf("the id %s is there twice", a.Val)
			} else if a.Key == "id" {
				ids[a.Val] = true
			}
		}
	}
	if strings.Contains(page.String(), "url(") || strings.Contains(page.String(), "@import") {
		t.Error("the page's style refers to something")
	}
	if elements < 50 {
		t.Errorf("the page has %d elements", elements)
	}
}

// Whatever the data, figures are drawn: nothing, one point, only zeros.
func TestFiguresOfLittle(t *testing.T) {
	for _, p := range []Panel{
		&Lines{}, &Lines{LogX: true, Curves: []Curve{{Points: []Point{{0, 0}}}}}, &Lines{Curves: []Curve{Distribution(nil, 0), Distribution([]float64{5}, 1)}},
		&Bars{}, &Bars{Bars: []Bar{{"a", 0, true}}}, &Heat{}, &Heat{Names: []string{"a"}, Rows: [][]float64{{}}}, &Heat{Names: []string{"a"}, Rows: [][]float64{{0, 0}}},
	} {
		var b bytes.Buffer
		f := Figure{ID: "f", Title: "t", Panels: []Panel{p}}
		if err := f.WriteSVG(&b); err != nil {
			t.Fatal(err)
		}
		if s := b.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") || !strings.HasSuffix(s, "</svg>\n") {
			t.Errorf("%+v is drawn as %s", p, s)
		}
	}
}

func TestTicks(t *testing.T) {
	a := logarithmic(3, 700, 0, 100)
	want := []float64{5, 10, 20, 50, 100, 200, 500}
	if len(a.tickValues) != len(want) {
		t.Fatalf("ticks %v, want %v", a.tickValues, want)
	}
	for i := range want {
		if d := a.tickValues[i] - want[i]; d > 1e-9 || d < -1e-9 {
			t.Errorf("tick %v, want %v", a.tickValues[i], want[i])
		}
	}
	if got := linear(0, 100, 0, 100, 4).tickValues; len(got) != 5 || got[4] != 100 {
		t.Errorf("ticks %v, want five to 100", got)
	}
}
