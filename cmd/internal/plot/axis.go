package plot

import (
	"math"
	"strconv"
)

// nice is the next round number.
func nice(x float64) float64 {
	if x <= 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 2.5, 4, 5, 8} {
		if x <= m*power {
			return m * power
		}
	}
	return 10 * power
}

// axis maps values to pixels.
type axis struct {
	from, to   float64 // values
	low, high  float64 // their pixels
	log        bool
	tickValues []float64
}

func linear(from, to, low, high float64, about int) axis {
	if !(to > from) {
		to = from + 1
	}
	a := axis{from: from, to: to, low: low, high: high}
	step := nice((to - from) / float64(about))
	for t := math.Ceil(from/step) * step; t <= to+step/1e6; t += step {
		a.tickValues = append(a.tickValues, t)
	}
	return a
}

// logarithmic has ticks at 1, 2 and 5 of each decade. from is above 0.
func logarithmic(from, to, low, high float64) axis {
	from = max(from, 1e-9)
	if !(to > from) {
		to = from * 10
	}
	a := axis{from: from, to: to, low: low, high: high, log: true}
	marks := []float64{1, 2, 5}
	if to/from > 1e4 {
		marks = marks[:1]
	}
	for decade := math.Floor(math.Log10(from)); decade <= math.Ceil(math.Log10(to)); decade++ {
		for _, m := range marks {
			if t := m * math.Pow(10, decade); t >= from && t <= to {
				a.tickValues = append(a.tickValues, t)
			}
		}
	}
	return a
}

// at is the pixel of a value, which is kept on the axis.
func (a *axis) at(v float64) float64 {
	v = min(max(v, a.from), a.to)
	share := (v - a.from) / (a.to - a.from)
	if a.log {
		share = math.Log(v/a.from) / math.Log(a.to/a.from)
	}
	return a.low + share*(a.high-a.low)
}

// number is as short as it may be.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
