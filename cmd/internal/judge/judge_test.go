package judge

import (
	"math"
	"strings"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/rivals"
)

func line(part, workload string, replicas int, share float64, seed uint64, variant string, means map[string]float64) Line {
	l := Line{Cell: Cell{Part: part, Workload: workload, Replicas: replicas, Share: share, Seed: seed, Variant: variant}, Scores: make(map[string]Score)}
	for p, m := range means {
		l.Scores[p] = Score{Mean: m, P99: 10 * m, TPOT: 5}
	}
	return l
}

func TestRatiosAreOverSeeds(t *testing.T) {
	lines := []Line{
		line("oracle", "hot", 8, 0.9, 1, "healthy", map[string]float64{Us: 50, Greedy: 100}),
		line("oracle", "hot", 8, 0.9, 2, "healthy", map[string]float64{Us: 200, Greedy: 100}),
		line("oracle", "chat", 8, 0.9, 1, "healthy", map[string]float64{Us: 90, Greedy: 100}),
		line("rivals", "chat", 8, 0.9, 1, "healthy", map[string]float64{Us: 900, Greedy: 100}),
		line("oracle", "chat", 8, 0.9, 2, "healthy", map[string]float64{Us: 90}),
	}
	got := ratios(lines, "oracle", Us, Greedy, "", ttftMean)
	if len(got) != 2 || math.Abs(got[0].value-1) > 1e-9 || math.Abs(got[1].value-0.9) > 1e-9 {
		t.Errorf("ratios are %v, want hot 1 and chat 0.9", got)
	}
	if g := geomean(got, func(place) bool { return true }); math.Abs(g-math.Sqrt(0.9)) > 1e-9 {
		t.Errorf("geometric mean is %v", g)
	}
}

func TestRatiosToHealthy(t *testing.T) {
	lines := []Line{
		line("metrics", "chat", 8, 0.7, 1, "healthy", map[string]float64{Us: 100}),
		line("metrics", "chat", 8, 0.7, 1, "metrics-zero", map[string]float64{Us: 130}),
	}
	o := &Outcome{Lines: lines}
	checks := o.Checks()
	if len(checks) != 1 || !checks[0].Missed || checks[0].Got != 1.3 {
		t.Errorf("checks are %+v, want one that is missed by 1.3", checks)
	}
}

// Every miss is named with its cell; a table without misses names its worst.
func TestMissesAreNamed(t *testing.T) {
	o := &Outcome{Lines: []Line{
		line("oracle", "hot", 8, 0.9, 1, "healthy", map[string]float64{Us: 120, Greedy: 100}),
		line("oracle", "chat", 8, 0.9, 1, "healthy", map[string]float64{Us: 80, Greedy: 100}),
		line("rivals", "chat", 8, 0.9, 1, "healthy", map[string]float64{Us: 100, Greedy: 100, "lmetric": 90, LeastConn: 110}),
	}, Missing: []string{"miniswe"}, NotRun: 3}
	var text strings.Builder
	if err := o.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"MISSED 1.200, at most 1.12: hot N=8 u=0.90, mean TTFT to oracle",
		"ok     1.200, at most 1.25: worst cell, p99 TTFT to oracle (hot N=8 u=0.90)",
		"MISSED 1.111, at most 1.03: chat N=8 u=0.90, mean TTFT to the best rival",
		"MISSED 1.111, at most 1.00: all workloads and sizes, mean TTFT to lmetric",
		"ok     0.909, at most 1.00: all workloads and sizes, mean TTFT to least_conn",
		"not run: miniswe", "not run: 3 of 6 cells",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
}

func TestTableIsComplete(t *testing.T) {
	known := make(map[string]bool)
	for _, n := range rivals.Names() {
		known[n] = true
	}
	for _, short := range []bool{false, true} {
		for _, p := range parts(short) {
			for _, name := range p.policies {
				if !known[name] {
					t.Errorf("part %s has policy %s, which isn't there", p.name, name)
				}
			}
			for _, v := range p.variants {
				if err := v.scenario.Validate(); err != nil {
					t.Error(err)
				}
			}
			if len(p.cells("")) == 0 {
				t.Errorf("part %s has no cells", p.name)
			}
		}
	}
	for _, n := range rivals.Names() {
		listed := n == Us || n == Greedy || n == Copying
		for _, a := range all {
			listed = listed || a == n
		}
		if !listed {
			t.Errorf("policy %s is in no table", n)
		}
	}
}

// A run of one generator through the whole machinery.
func TestRunIsRepeatable(t *testing.T) {
	knees, err := readKnees()
	if err != nil {
		t.Fatal(err)
	}
	r := runner{ctx: t.Context(), knees: knees}
	c := Cell{Workload: "unique", Replicas: 8, Share: 0.3, Seed: 2, policies: []string{Us, LeastConn}, open: "unique"}
	if kneeOf(knees["unique"], 8) == 0 {
		t.Fatal("the knee of unique isn't known")
	}
	a, err := r.run(&c)
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.run(&c)
	if err != nil || a.Scores[Us] != b.Scores[Us] || a.Scores[LeastConn] != b.Scores[LeastConn] {
		t.Errorf("two runs give %+v and %+v, %v", a.Scores, b.Scores, err)
	}
	if a.Scores[Us].Mean <= 0 || a.Scores[Us].P99 < a.Scores[Us].Mean {
		t.Errorf("scores are %+v", a.Scores[Us])
	}
}
