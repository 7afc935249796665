package fit

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Report says what was fitted and how well the simulation reproduces the
// recording. Errors are (simulated - recorded) / recorded, in percent.
type Report struct {
	Model    string `json:"model,omitempty"`
	Device   string `json:"device,omitempty"`
	Version  string `json:"vllm_version,omitempty"`
	Requests int    `json:"requests"`
	Judged   int    `json:"judged_requests"`

	Engine       EngineReport `json:"engine"`
	Coefficients Coefficients `json:"coefficients"`

	LatencyMAPE float64     `json:"latency_mape_percent"` // mean of the requests' absolute errors in e2e_ms
	TTFT        Distances   `json:"ttft_ms"`
	TPOT        Distances   `json:"tpot_ms"`
	E2E         Distances   `json:"e2e_ms"`
	Curves      *CurveError `json:"curves,omitempty"`

	Notes []string `json:"notes"`
}

// EngineReport is the engine that was simulated.
type EngineReport struct {
	BlockSize     int    `json:"block_size_tokens"`
	Blocks        int    `json:"kv_blocks"`
	BlocksSource  string `json:"kv_blocks_source"`
	MaxSeqs       int    `json:"max_num_seqs"`
	MaxBatched    int    `json:"max_num_batched_tokens"`
	MaxModelLen   int    `json:"max_model_len_tokens"`
	Async         bool   `json:"async_scheduling"`
	ByChunk       bool   `json:"admit_by_chunk"`
	PrefixCaching bool   `json:"prefix_caching"`
	Replicas      int    `json:"data_parallel_size"`
}

// Coefficients are those of simengine.Cost in the units in which they are
// published.
type Coefficients struct {
	Base            float64 `json:"base_ms"`
	PrefillToken    float64 `json:"prefill_us_per_token"`
	PrefillFree     int     `json:"prefill_free_tokens"`
	DecodeSeq       float64 `json:"decode_us_per_seq"`
	ContextToken    float64 `json:"context_ns_per_token"`
	AttentionTerm   float64 `json:"attention_ns_per_token_pair"`
	Experts         float64 `json:"experts_ms"`
	ExpertShare     float64 `json:"expert_share"`
	FirstStep       float64 `json:"first_step_ms"`
	RequestOverhead float64 `json:"request_overhead_ms"`
}

// Distances compares two distributions of times in milliseconds.
type Distances struct {
	Recorded  Percentiles `json:"recorded"`
	Simulated Percentiles `json:"simulated"`
	Mean      float64     `json:"mean_error_percent"`
	P50       float64     `json:"p50_error_percent"`
	P90       float64     `json:"p90_error_percent"`
	P99       float64     `json:"p99_error_percent"`
}

// Percentiles describe a distribution.
type Percentiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
}

// CurveError is the mean absolute distance of the simulated curves from the
// recorded ones. One that wasn't recorded is null.
type CurveError struct {
	Running *float64 `json:"running_requests"`
	Waiting *float64 `json:"waiting_requests"`
	Usage   *float64 `json:"kv_usage_percent_points"`
}

// Report judges a simulation by the requests that judged picks; nil for all.
func (r *Run) Report(c simengine.Config, tl *Timeline, judged func(i int) bool) *Report {
	rep := &Report{
		Model: r.Model, Device: r.Device, Version: r.Version, Requests: len(r.Requests),
		Engine: EngineReport{
			BlockSize: c.BlockSize, Blocks: c.Blocks, BlocksSource: r.blocksSource,
			MaxSeqs: c.MaxNumSeqs, MaxBatched: c.MaxNumBatchedTokens, MaxModelLen: c.MaxModelLen,
			Async: c.AsyncScheduling, ByChunk: c.AdmitByChunk, PrefixCaching: !c.DisablePrefixCaching, Replicas: max(1, r.Replicas),
		},
		Coefficients: published(c.Cost),
		Notes:        append([]string{}, r.Notes...),
	}
	var ttft, tpot, e2e [2][]float64
	off := 0.0
	for i := range r.Requests {
		if judged != nil && !judged(i) {
			continue
		}
		q, o := &r.Requests[i], &tl.Requests[i]
		rep.Judged++
		off += math.Abs(o.E2E().Seconds()/q.E2E().Seconds() - 1)
		add(&ttft, q.TTFT(), o.TTFT())
		add(&e2e, q.E2E(), o.E2E())
		if q.Output > 1 {
			n := time.Duration(q.Output - 1)
			add(&tpot, (q.Last-q.First)/n, (o.Last-o.First)/n)
		}
	}
	rep.LatencyMAPE = 100 * off / float64(max(rep.Judged, 1))
	rep.TTFT, rep.TPOT, rep.E2E = distances(ttft), distances(tpot), distances(e2e)
	rep.Curves = r.curveError(tl)
	return rep
}

func add(to *[2][]float64, recorded, simulated time.Duration) {
	to[0] = append(to[0], recorded.Seconds()*1e3)
	to[1] = append(to[1], simulated.Seconds()*1e3)
}

func distances(x [2][]float64) Distances {
	a, b := percentiles(x[0]), percentiles(x[1])
	percent := func(recorded, simulated float64) float64 {
		if recorded == 0 {
			return 0
		}
		return 100 * (simulated/recorded - 1)
	}
	return Distances{
		Recorded: a, Simulated: b,
		Mean: percent(a.Mean, b.Mean), P50: percent(a.P50, b.P50), P90: percent(a.P90, b.P90), P99: percent(a.P99, b.P99),
	}
}

func percentiles(list []float64) Percentiles {
	if len(list) == 0 {
		return Percentiles{}
	}
	sorted := slices.Sorted(slices.Values(list))
	sum := 0.0
	for _, x := range sorted {
		sum += x
	}
	// Between two ranks the percentile lies in proportion.
	at := func(p float64) float64 {
		rank := p * float64(len(sorted)-1)
		i := int(rank)
		j := min(i+1, len(sorted)-1)
		return sorted[i] + (rank-float64(i))*(sorted[j]-sorted[i])
	}
	return Percentiles{Mean: sum / float64(len(sorted)), P50: at(0.5), P90: at(0.9), P99: at(0.99)}
}

func (r *Run) curveError(tl *Timeline) *CurveError {
	if len(r.Samples) == 0 {
		return nil
	}
	recorded, simulated := r.Curves(tl)
	mean := func(of func(Point) float64, scale float64) *float64 {
		sum, n := 0.0, 0
		for i := range recorded {
			if x := of(recorded[i]); x >= 0 {
				sum += scale * math.Abs(x-of(simulated[i]))
				n++
			}
		}
		if n == 0 {
			return nil
		}
		sum /= float64(n)
		return &sum
	}
	return &CurveError{
		Running: mean(func(p Point) float64 { return p.Running }, 1),
		Waiting: mean(func(p Point) float64 { return p.Waiting }, 1),
		Usage:   mean(func(p Point) float64 { return p.Usage }, 100),
	}
}

func published(c simengine.Cost) Coefficients {
	return Coefficients{
		Base: c.Base.Seconds() * 1e3, PrefillToken: c.PrefillToken * 1e6, DecodeSeq: c.DecodeSeq * 1e6,
		ContextToken: c.ContextToken * 1e9, AttentionTerm: c.AttentionTerm * 1e9,
		PrefillFree: c.PrefillFree, Experts: c.Experts.Seconds() * 1e3, ExpertShare: c.ExpertShare,
		FirstStep: c.FirstStep.Seconds() * 1e3, RequestOverhead: c.RequestOverhead.Seconds() * 1e3,
	}
}

// WriteJSON writes the report as one object.
func (rep *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(rep)
}

// WriteText writes the report as tables.
func (rep *Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	e, c := rep.Engine, rep.Coefficients
	fmt.Fprintf(t, "%s on %s, vLLM %s: %d requests, %d of them judged\n", or(rep.Model), or(rep.Device), or(rep.Version), rep.Requests, rep.Judged)
	fmt.Fprintf(t, "%d blocks of %d tokens (%s), %d tokens and %d sequences a step, async scheduling %s\n\n",
		e.Blocks, e.BlockSize, e.BlocksSource, e.MaxBatched, e.MaxSeqs, map[bool]string{true: "on", false: "off"}[e.Async])
	fmt.Fprintln(t, "coefficient\tvalue\tunit")
	for _, x := range []struct {
		name  string
		value float64
		unit  string
	}{
		{"base", c.Base, "ms a step"}, {"prefill", c.PrefillToken, "us a token"}, {"prefill free", float64(c.PrefillFree), "tokens a step"}, {"decode", c.DecodeSeq, "us a sequence"},
		{"context", c.ContextToken, "ns a token"}, {"attention", c.AttentionTerm, "ns a pair of tokens"},
		{"experts", c.Experts, "ms for all"}, {"experts of a token", c.ExpertShare, "of all"},
		{"first step", c.FirstStep, "ms more"}, {"request overhead", c.RequestOverhead, "ms"},
	} {
		fmt.Fprintf(t, "%s\t%.4g\t%s\n", x.name, x.value, x.unit)
	}
	fmt.Fprintf(t, "\nlatency, mean of the requests' errors: %.2f %%\n\n", rep.LatencyMAPE)
	fmt.Fprintln(t, "ms, recorded / simulated\tmean\tp50\tp90\tp99")
	for _, x := range []struct {
		name string
		d    Distances
	}{{"TTFT", rep.TTFT}, {"TPOT", rep.TPOT}, {"end to end", rep.E2E}} {
		a, b := x.d.Recorded, x.d.Simulated
		fmt.Fprintf(t, "%s\t%.1f / %.1f\t%.1f / %.1f\t%.1f / %.1f\t%.1f / %.1f\n", x.name, a.Mean, b.Mean, a.P50, b.P50, a.P90, b.P90, a.P99, b.P99)
		fmt.Fprintf(t, "\t%+.2f %%\t%+.2f %%\t%+.2f %%\t%+.2f %%\n", x.d.Mean, x.d.P50, x.d.P90, x.d.P99)
	}
	if rep.Curves != nil {
		fmt.Fprint(t, "\ncurves, mean distance:")
		for _, x := range []struct {
			name  string
			value *float64
		}{{"running", rep.Curves.Running}, {"waiting", rep.Curves.Waiting}, {"KV usage, percent points", rep.Curves.Usage}} {
			if x.value != nil {
				fmt.Fprintf(t, "  %s %.2f", x.name, *x.value)
			}
		}
		fmt.Fprintln(t)
	}
	for i, n := range rep.Notes {
		if i == 0 {
			fmt.Fprintln(t)
		}
		fmt.Fprintf(t, "note: %s\n", n)
	}
	return t.Flush()
}

func or(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
