package judge

import (
	"bytes"
	"strings"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/plot"
)

// What was run is drawn, a bar for each workload or policy, and nothing else.
func TestFiguresDrawWhatWasRun(t *testing.T) {
	o := &Outcome{Lines: []Line{
		line("oracle", "hot", 8, 0.9, 1, "healthy", map[string]float64{Us: 120, Greedy: 100, LeastConn: 170, "smg": 130}),
		line("rivals", "chat", 8, 0.5, 1, "healthy", map[string]float64{Us: 100, Greedy: 100, LeastConn: 250}),
	}}
	var text bytes.Buffer
	p := plot.Page{Title: "t", Parts: o.Figures()}
	if err := p.WriteSVG(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"8 replicas, 90 % of the knee", "8 replicas, 50 % of the knee", ">hot</text>", ">1.2</text>", ">smg</text>", ">1.3</text>", ">least_conn</text>", ">2.5</text>"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the figures lack %q", want)
		}
	}
	for _, other := range []string{">unknown</text>", ">tenants</text>", ">1.7</text>"} {
		if strings.Contains(text.String(), other) {
			t.Errorf("the figures have %q", other)
		}
	}
	if got := len((&Outcome{}).Figures()); got != 0 {
		t.Errorf("%d figures of nothing", got)
	}
}
