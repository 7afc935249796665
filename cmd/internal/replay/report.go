package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is one object with a result for each policy that saw the trace. The
// fields' names carry their units; what isn't known is left out.
type Report struct {
	Trace    string   `json:"trace"`
	Replicas int      `json:"replicas,omitempty"`
	Results  []Result `json:"results"`
}

// Result sums up the records of one replay. Times are of requests that
// succeeded.
type Result struct {
	Policy   string `json:"policy"`
	Requests int    `json:"requests"`
	Failed   int    `json:"failed"`
	// DurationS is the length of the replay in seconds.
	DurationS float64       `json:"duration_s,omitempty"`
	TTFT      *Distribution `json:"ttft_ms,omitempty"`
	TPOT      *Distribution `json:"tpot_ms,omitempty"`
	E2E       *Distribution `json:"e2e_ms,omitempty"`
	// PromptTokens and CompletionTokens are sums of the servers' usage.
	PromptTokens     int64 `json:"prompt_tokens,omitempty"`
	CompletionTokens int64 `json:"completion_tokens,omitempty"`
	// CachedTokenRatio is the share of prompt tokens that a prefix cache
	// supplied, over the requests whose server told.
	CachedTokenRatio *float64 `json:"cached_token_ratio,omitempty"`
	// LoadImbalance is the largest number of requests of any upstream over the
	// mean: 1 is even.
	LoadImbalance *float64 `json:"load_imbalance,omitempty"`
	// TTFTMeanVsOracle and TTFTP99VsOracle are ratios to the greedy oracle's,
	// in virtual replays that have it.
	TTFTMeanVsOracle *float64 `json:"ttft_mean_vs_oracle,omitempty"`
	TTFTP99VsOracle  *float64 `json:"ttft_p99_vs_oracle,omitempty"`
	// RequestsPerUpstream are in the order of the upstreams.
	RequestsPerUpstream []int64 `json:"requests_per_upstream,omitempty"`
	// Errors has an entry for each class of failure, most frequent first.
	Errors []ErrorCount `json:"errors,omitempty"`
}

// ErrorCount is how often requests failed in one way, and the first's detail.
type ErrorCount struct {
	Class   string `json:"class"`
	Count   int    `json:"count"`
	Example string `json:"example,omitempty"`
}

// Distribution describes measured values in milliseconds. Percentiles are
// interpolated linearly between the nearest ranks.
type Distribution struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
}

// Summarize makes a result of records.
func Summarize(policy string, records []Record, duration time.Duration) Result {
	r := Result{Policy: policy, Requests: len(records), DurationS: rounded(duration.Seconds())}
	var ttft, tpot, e2e []float64
	var told, cached int64
	errors := make(map[string]*ErrorCount)
	for i := range records {
		rec := &records[i]
		if rec.Class != "" {
			r.Failed++
			if errors[rec.Class] == nil {
				errors[rec.Class] = &ErrorCount{Class: rec.Class, Example: rec.Detail}
			}
			errors[rec.Class].Count++
			continue
		}
		e2e = append(e2e, milliseconds(rec.E2E))
		if rec.TTFT > 0 {
			ttft = append(ttft, milliseconds(rec.TTFT))
		}
		if t := rec.TPOT(); t > 0 {
			tpot = append(tpot, milliseconds(t))
		}
		r.PromptTokens += rec.PromptTokens
		r.CompletionTokens += rec.CompletionTokens
		if rec.CachedKnown {
			told += rec.PromptTokens
			cached += rec.CachedTokens
		}
	}
	r.TTFT, r.TPOT, r.E2E = Describe(ttft), Describe(tpot), Describe(e2e)
	if told > 0 {
		ratio := math.Round(1e4*float64(cached)/float64(told)) / 1e4
		r.CachedTokenRatio = &ratio
	}
	for _, e := range errors {
		r.Errors = append(r.Errors, *e)
	}
	slices.SortFunc(r.Errors, func(a, b ErrorCount) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Class, b.Class)
	})
	return r
}

// SetUpstreams adds how the requests were spread.
func (r *Result) SetUpstreams(requests []int64) {
	r.RequestsPerUpstream = requests
	var sum, most int64
	for _, n := range requests {
		sum += n
		most = max(most, n)
	}
	if sum > 0 {
		imbalance := rounded(float64(most) * float64(len(requests)) / float64(sum))
		r.LoadImbalance = &imbalance
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// rounded keeps three decimals: the clock's noise is above that.
func rounded(f float64) float64 { return math.Round(f*1000) / 1000 }

// Describe sorts values and sums them up; nil for none.
func Describe(values []float64) *Distribution {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return &Distribution{
		Mean: rounded(sum / float64(len(values))),
		P50:  rounded(percentile(values, 0.50)),
		P90:  rounded(percentile(values, 0.90)),
		P99:  rounded(percentile(values, 0.99)),
	}
}

// percentile of sorted values, at least one.
func percentile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// WriteJSON writes the report as one indented JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the report for people, a block for each result.
func (r *Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "trace %s\n", r.Trace)
	for i := range r.Results {
		res := &r.Results[i]
		fmt.Fprintf(w, "\n%s: %d requests, %d failed, in %.1f s\n", res.Policy, res.Requests, res.Failed, res.DurationS)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "ms\tmean\tp50\tp90\tp99\t")
		for _, row := range []struct {
			name string
			d    *Distribution
		}{{"TTFT", res.TTFT}, {"TPOT", res.TPOT}, {"e2e", res.E2E}} {
			if row.d != nil {
				fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t\n", row.name, row.d.Mean, row.d.P50, row.d.P90, row.d.P99)
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(w, "cached-token ratio %s of %d prompt tokens; %d output tokens\n", Ratio(res.CachedTokenRatio), res.PromptTokens, res.CompletionTokens)
		for _, e := range res.Errors {
			fmt.Fprintf(w, "error %s: %d times: %s\n", e.Class, e.Count, e.Example)
		}
	}
	return nil
}

// Ratio writes a share as people read it.
func Ratio(r *float64) string {
	if r == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f %%", *r*100)
}
