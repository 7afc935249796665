package fit

import "fmt"

// Bounds are the largest absolute errors, in percent, that a report may have.
type Bounds struct {
	LatencyMAPE float64
	Middle      float64 // mean and p50 of TTFT and TPOT
	Tail        float64 // p90 and p99 of TTFT and TPOT
}

// The bounds of the engine model: for a simulation with the coefficients of the
// same run, and for one of the second half of a run with those of the first.
var (
	WholeBounds = Bounds{LatencyMAPE: 2, Middle: 3, Tail: 5}
	HalfBounds  = Bounds{LatencyMAPE: 3, Middle: 3, Tail: 5}
)

// Check returns a sentence for each bound that the report misses.
func (rep *Report) Check(b Bounds) []string {
	var missed []string
	check := func(what string, got, bound float64) {
		if !(got >= -bound && got <= bound) {
			missed = append(missed, fmt.Sprintf("%s is off by %.2f %%, bound %g %%", what, got, bound))
		}
	}
	check("latency", rep.LatencyMAPE, b.LatencyMAPE)
	for _, x := range []struct {
		name string
		d    Distances
	}{{"TTFT", rep.TTFT}, {"TPOT", rep.TPOT}} {
		check(x.name+" mean", x.d.Mean, b.Middle)
		check(x.name+" p50", x.d.P50, b.Middle)
		check(x.name+" p90", x.d.P90, b.Tail)
		check(x.name+" p99", x.d.P99, b.Tail)
	}
	return missed
}
