package judge

import (
	"fmt"
	"math"
	"reflect"
	"slices"
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
	cells := []Cell{{Workload: "unique", Replicas: 8, Share: 0.3, Seed: 2, policies: []string{Us, LeastConn}, open: "unique"}}
	if kneeOf(knees["unique"], 8) == 0 {
		t.Fatal("the knee of unique isn't known")
	}
	a, err := replay(t.Context(), cells, knees, Options{})
	if err != nil || len(a) != 1 {
		t.Fatalf("%d lines, %v", len(a), err)
	}
	b, err := replay(t.Context(), cells, knees, Options{})
	if err != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("two runs give %+v and %+v, %v", a, b, err)
	}
	if s := a[0].Scores[Us]; s.Mean <= 0 || s.P99 < s.Mean {
		t.Errorf("scores are %+v", s)
	}
}

// What cells have in common is run once, and all that is on one trace is together;
// of the last seed what is largest comes first.
func TestCellsShareRuns(t *testing.T) {
	cell := func(part, workload string, replicas int, seed uint64, v variant, policies ...string) []run {
		c := Cell{Part: part, Workload: workload, Replicas: replicas, Seed: seed, variant: v, policies: policies, open: workload}
		return c.runs(float64(10 * replicas))
	}
	split := variant{name: "2 split", proxies: 2, split: true}
	jobs := jobsOf([][]run{
		cell("oracle", "hot", 4, 1, variant{}, Us, Greedy),
		cell("oracle", "hot", 4, 2, variant{}, Us, Greedy),
		cell("oracle", "hot", 8, 1, variant{}, Us, Greedy),
		cell("oracle", "hot", 8, 2, variant{}, Us, Greedy),
		cell("rivals", "hot", 4, 1, variant{}, Us, Greedy, LeastConn),
		cell("gateways", "hot", 8, 1, variant{name: "healthy"}, Us, LeastConn),
		cell("gateways", "hot", 8, 1, split, Us, LeastConn),
	})
	var got []string
	for _, j := range jobs {
		line := fmt.Sprintf("%d/%d:", j.replicas, j.seed)
		for _, r := range j.runs {
			line += " " + r.policy
			if r.variant.split {
				line += "/split"
			}
		}
		got = append(got, line)
	}
	want := []string{
		"4/1: llm_prefix oracle_ttft least_conn",
		"8/1: llm_prefix oracle_ttft least_conn llm_prefix/split least_conn/split",
		"8/2: llm_prefix oracle_ttft",
		"4/2: llm_prefix oracle_ttft",
	}
	if !slices.Equal(got, want) {
		t.Errorf("jobs are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A budget that is over leaves no line, and says of how many.
func TestNoTimeNoLines(t *testing.T) {
	o, err := Run(t.Context(), Options{Data: t.TempDir(), Short: true, Budget: 1})
	if err != nil || len(o.Lines) > 0 || o.NotRun == 0 {
		t.Errorf("%d lines, %d not run, %v", len(o.Lines), o.NotRun, err)
	}
}

// The bounds that the table is for are among those that are checked.
func TestBoundsAreAllThere(t *testing.T) {
	var lines []Line
	for _, p := range parts(false) {
		for _, c := range p.cells("") {
			l := Line{Cell: c, Scores: make(map[string]Score)}
			for _, policy := range c.policies {
				l.Scores[policy] = Score{Mean: 100, P99: 1000, TPOT: 5}
			}
			lines = append(lines, l)
		}
	}
	var text strings.Builder
	for _, c := range (&Outcome{Lines: lines}).Checks() {
		text.WriteString(c.What + "\n")
	}
	for _, want := range []string{
		"all workloads N=4 u=0.55, mean", "all workloads N=16 u=0.90, p99", "all workloads N=64 u=0.90, mean",
		"worst cell, mean TTFT to oracle", "worst cell, p99 TTFT to oracle",
		"weak cell hot N=8 u=0.90, mean TTFT to oracle_ttft", "weak cell hot N=8 u=0.90, mean TTFT to oracle_rep",
		"weak cell tenants N=8 u=0.90", "weak cell conversation N=64 u=0.90", "weak cell miniswe N=16 u=0.90", "weak cell agents N=16 u=0.90",
		"worst cell, mean TTFT to the best rival", "worst cell, p99 TTFT to the best rival",
		"all workloads and sizes, mean TTFT to random", "all workloads and sizes, p99 TTFT to lpwl", "mean TPOT to least_conn",
		"join, mean", "die, mean", "slow, mean", "restart, mean",
		"metrics-missing, mean", "metrics-frozen, mean", "metrics-zero, mean", "metrics-lying, mean", "usage-missing, mean", "capacity-half, mean", "capacity-double, mean",
		"gateways 2 pinned, mean TTFT to oracle", "gateways 2 split, mean TTFT to oracle", "gateways 2 split, mean TTFT to the next policy",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no bound is %q", want)
		}
	}
}
