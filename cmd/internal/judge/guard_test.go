//go:build !race

package judge

import "testing"

// guarded is what the decision reaches on the workloads that need no file and
// little time: eight replicas, 55 and 90 % of the knee, three seeds. Replays are
// exact, so these figures move with the decision, the engine model, the oracle
// or the generators, and with nothing else. Record them anew where they get
// better.
//
// The margin is for changes that mean no difference: any of them reshuffles what
// comes after. A tie band of 0.027 instead of 0.03 moves means by up to 0.7 % and
// p99 by up to 3 %, which hangs on some thirty requests of a cell.
//
// The bound is what make replay holds all workloads together against. What
// misses it stays missed there.
var guarded = []struct {
	metric          Metric
	share           float64
	reached, margin float64 // geometric mean of ratios to the greedy oracle
	bound           float64
}{
	{ttftMean, 0.55, 0.818, 1.02, meanAtHalf},
	{ttftMean, 0.9, 0.942, 1.02, meanAtHigh},
	{ttftP99, 0.55, 0.892, 1.05, p99AtHalf},
	{ttftP99, 0.9, 1.004, 1.05, p99AtHigh},
}

// The decision gets no worse than it was when its figures were recorded: 48 runs,
// ten seconds of one core. The race detector would take minutes for what has no
// second goroutine.
func TestTheDecisionGetsNoWorse(t *testing.T) {
	knees, err := readKnees()
	if err != nil {
		t.Fatal(err)
	}
	open := part{name: "oracle", workloads: []string{"tenants", "hot", "flash", "unique"}, replicas: []int{8},
		shares: []float64{0.55, 0.9}, seeds: 3, policies: []string{Us, Greedy}}
	lines, err := replay(t.Context(), open.cells(""), knees, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range guarded {
		all := ratios(lines, "oracle", Us, Greedy, "", g.metric)
		got := geomean(all, func(p place) bool { return p.Share == g.share })
		verdict := "holds"
		if got > g.bound {
			verdict = "is missed"
		}
		t.Logf("%s at %.2f of the knee: %.4f of the oracle's; recorded %.4f; the bound %.2f %s", g.metric.Name, g.share, got, g.reached, g.bound, verdict)
		if got > g.reached*g.margin {
			t.Errorf("%s at %.2f of the knee is %.4f of the oracle's, and was %.4f", g.metric.Name, g.share, got, g.reached)
		}
	}
}
