package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// params are a generator's numbers by name, with their defaults.
type params map[string]float64

// Param is one number of a generator.
type Param struct {
	Name    string
	Default float64
	About   string
}

// parse reads "name=value,name=value" over the defaults.
func parse(known []Param, text string) (params, error) {
	p := make(params, len(known))
	for _, k := range known {
		p[k.Name] = k.Default
	}
	if text == "" {
		return p, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok || !slices.ContainsFunc(known, func(k Param) bool { return k.Name == name }) {
			return nil, fmt.Errorf("unknown parameter %q, known are %s", part, describe(known))
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v >= 0 && v <= 1e7) {
			return nil, fmt.Errorf("parameter %s is %q, want a number from 0 to 1e7", name, value)
		}
		p[name] = v
	}
	return p, nil
}

func describe(known []Param) string {
	var all []string
	for _, k := range known {
		all = append(all, fmt.Sprintf("%s=%g", k.Name, k.Default))
	}
	return strings.Join(all, " ")
}

// source is a generator's chance.
type source struct{ *rand.Rand }

func newSource(seed uint64) source { return source{rand.New(rand.NewPCG(seed, 0x77f1))} }

// about is a length around mean tokens: log-normal with a standard deviation of
// sigma in the logarithm, and at least 1.
func (s source) about(mean, sigma float64) int {
	return max(int(mean*lognormal(s.NormFloat64(), sigma)), 1)
}

// fresh is an id that nothing else has.
func (s source) fresh() uint64 { return s.Uint64() | 1<<63 }

// zipf returns the cumulated shares of n things of which the i-th is asked for
// 1/i^power as often as the first.
func zipf(n int, power float64) []float64 {
	c := make([]float64, n)
	sum := 0.0
	for i := range c {
		sum += inversePower(float64(i+1), power)
		c[i] = sum
	}
	for i := range c {
		c[i] /= sum
	}
	return c
}

// draw picks an index by cumulated shares.
func (s source) draw(cumulated []float64) int {
	i, _ := slices.BinarySearch(cumulated, s.Float64())
	return min(i, len(cumulated)-1)
}
