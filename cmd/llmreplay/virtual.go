package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/cluster"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/fit"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/judge"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/plot"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/replay"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/rivals"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/workload"
)

// virtual holds the flags of the command.
type virtual struct {
	cluster.Config
	trace     string
	preset    string
	blockSize int
	kvTokens  int
	requests  int
	share     float64
	policies  string
	scenario  string
	json      bool
	picture   picture
}

// virtualReport is what the command prints as JSON.
type virtualReport struct {
	replay.Report
	Preset    string  `json:"preset"`
	Rate      float64 `json:"rate_requests_per_s"`
	Share     float64 `json:"rate_vs_knee,omitempty"`
	Scenario  string  `json:"scenario,omitempty"`
	Proxies   int     `json:"proxies"`
	Seed      uint64  `json:"seed"`
	Shareable float64 `json:"infinite_cache_token_ratio"`
}

func newVirtual() *cobra.Command {
	v := &virtual{}
	cmd := &cobra.Command{
		Use:   "virtual --trace FILE|GENERATOR --policies NAME,NAME",
		Short: "Replays requests on simulated engines in virtual time, under several policies",
		Long: `Replays requests on simulated vLLM engines in virtual time and reports, for each
policy, what clients saw. The same flags give the same report to the last digit.

--rate is a share of the knee: the rate at which the better of oracle_rep and
lmetric has four times the mean TTFT that it has when idle. It is found by
search, which takes a while the first time, and remembered in the user's cache
folder. --rps sets requests a second instead; without either the trace's own
times are kept.`,
		Example: "  llmreplay virtual --trace tenants:prompts=100 --replicas 8 --rps 40 --policies llm_prefix,round_robin,oracle_ttft",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return v.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&v.trace, "trace", "", "file of requests or name of a generator, with parameters behind a colon (see llmreplay traces)")
	f.IntVar(&v.Replicas, "replicas", cluster.DefaultReplicas, "engines")
	f.StringVar(&v.preset, "preset", "llama3.1-8b-h100", "model and hardware of the engines, or a .json file that llmreplay fit wrote")
	f.IntVar(&v.blockSize, "block-size", 16, "tokens of a KV block; larger ones make replays faster")
	f.IntVar(&v.kvTokens, "kv-tokens", 0, "KV cache of an engine in tokens; 0 for the preset's or what the generator asks for")
	f.IntVar(&v.requests, "requests", workload.DefaultRequests, "about how many requests")
	f.Float64Var(&v.share, "rate", 0, "rate as a share of the knee")
	f.Float64Var(&v.Rate, "rps", 0, "rate in requests a second")
	f.StringVar(&v.policies, "policies", "llm_prefix,round_robin,least_conn,oracle_ttft", "policies, each with settings behind a colon")
	f.DurationVar(&v.ScrapeInterval, "scrape-interval", cluster.DefaultScrapeInterval, "time between two looks at an engine's metrics")
	f.IntVar(&v.Proxies, "proxies", 1, "proxies that know nothing of each other")
	f.BoolVar(&v.Split, "split", false, "send each request to any proxy, instead of all requests of a conversation to one (see llmreplay traces)")
	f.StringVar(&v.scenario, "scenario", "", "what happens to the engines (see llmreplay traces)")
	f.Float64Var(&v.Warmup, "warmup", cluster.DefaultWarmup, "share of the requests that isn't counted")
	f.Uint64Var(&v.Seed, "seed", 1, "of generators, jitter and ties")
	f.BoolVar(&v.json, "json", false, "print the report as one JSON object")
	v.picture.addFlags(f)
	if err := cmd.MarkFlagRequired("trace"); err != nil {
		panic(err) // the flag is defined above
	}
	cmd.MarkFlagsMutuallyExclusive("rate", "rps")
	return cmd
}

func (v *virtual) run(ctx context.Context, stdout, _ io.Writer) error {
	p, err := fit.Preset(v.preset)
	if err != nil {
		return err
	}
	v.Engine = judge.Engine(p.Config, v.blockSize, v.kvTokens)
	if err := v.Engine.Validate(); err != nil {
		return err
	}
	if v.Rate < 0 || v.share < 0 || v.Replicas < 1 {
		return errors.New("rates aren't negative, and there is at least one replica")
	}
	v.Scenario = cluster.Scenario(v.scenario)
	if err := v.Scenario.Validate(); err != nil {
		return err
	}
	if v.share > 0 {
		knee, err := openKnees().find(ctx, v.trace, v.requests, v.Config)
		if err != nil {
			return err
		}
		v.Rate = v.share * knee
	}
	w, err := workload.Open(v.trace, workload.Options{Requests: v.requests, Rate: v.Rate, Seed: v.Seed})
	if err != nil {
		return err
	}
	if v.kvTokens > 0 {
		w.KVTokens = 0
	}
	rate := v.Rate
	if rate == 0 {
		rate = w.Rate()
	}
	report := virtualReport{
		Report: replay.Report{Trace: w.Name, Replicas: v.Replicas},
		Preset: v.preset, Rate: thousandths(rate), Share: v.share, Scenario: v.scenario, Proxies: v.Proxies, Seed: v.Seed,
		Shareable: math.Round(w.Shareable(v.Engine.BlockSize)*1e4) / 1e4,
	}
	var sights []sight
	for _, name := range rivals.Split(v.policies) {
		if err := ctx.Err(); err != nil {
			return err
		}
		o, err := cluster.Run(w, v.Config, cluster.Named(name))
		if err != nil {
			return err
		}
		report.Results = append(report.Results, resultOf(name, o))
		sights = append(sights, sight{ttft: o.TTFT, stays: stays(o)})
	}
	compare(report.Results)
	if err := v.picture.write(func() *plot.Page { return report.page(sights) }); err != nil {
		return err
	}
	if v.json {
		return writeJSON(stdout, report)
	}
	return report.writeText(stdout)
}

// compare adds the ratios to the greedy oracle, where it is among the results.
func compare(results []replay.Result) {
	for _, oracle := range results {
		if !strings.HasPrefix(oracle.Policy, "oracle_ttft") || oracle.TTFT == nil {
			continue
		}
		for i := range results {
			if t := results[i].TTFT; t != nil {
				mean, p99 := ratio(t.Mean, oracle.TTFT.Mean), ratio(t.P99, oracle.TTFT.P99)
				results[i].TTFTMeanVsOracle, results[i].TTFTP99VsOracle = &mean, &p99
			}
		}
	}
}

func ratio(a, b float64) float64 { return thousandths(a / b) }

// page draws the report.
func (r *virtualReport) page(sights []sight) *plot.Page {
	for i := range sights {
		sights[i].result = &r.Results[i]
	}
	p := &plot.Page{
		Title: "llmreplay virtual: " + r.Trace, Lead: r.lead() + ".", Parts: comparison(sights),
		Foot: fmt.Sprintf("Simulated engines in virtual time; gateways: %d, seed: %d. The load shows the warm-up too, all else is without it.", r.Proxies, r.Seed),
	}
	p.Head, p.Rows = resultsTable(r.Results)
	return p
}

// stays are the requests of a virtual run.
func stays(o *cluster.Outcome) []stay {
	all := make([]stay, len(o.Stays))
	for i, s := range o.Stays {
		all[i] = stay{strconv.Itoa(s.Upstream), s.Sent, s.End}
	}
	return all
}

// lead says what was replayed.
func (r *virtualReport) lead() string {
	s := fmt.Sprintf("%s on %d replicas of %s at %.2f requests/s", r.Trace, r.Replicas, r.Preset, r.Rate)
	if r.Scenario != "" {
		s += ", " + r.Scenario
	}
	return s + fmt.Sprintf("; an infinite cache would supply %.1f %% of prompt tokens", 100*r.Shareable)
}

func (r *virtualReport) writeText(w io.Writer) error {
	fmt.Fprint(w, r.lead(), "\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\trequests\tfailed\tTTFT mean\tp50\tp90\tp99\tTPOT mean\tp99\te2e mean\tcached\timbalance\tvs oracle\tp99 vs oracle\t")
	for i := range r.Results {
		x := &r.Results[i]
		if x.TTFT == nil || x.TPOT == nil {
			fmt.Fprintf(t, "%s\t%d\t%d\t\n", x.Policy, x.Requests, x.Failed)
			continue
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t%.2f\t%.0f\t%s\t%.2f\t%s\t%s\t\n", x.Policy, x.Requests, x.Failed,
			x.TTFT.Mean, x.TTFT.P50, x.TTFT.P90, x.TTFT.P99, x.TPOT.Mean, x.TPOT.P99, x.E2E.Mean,
			replay.Ratio(x.CachedTokenRatio), number(x.LoadImbalance), times(x.TTFTMeanVsOracle), times(x.TTFTP99VsOracle))
	}
	return t.Flush()
}

func number(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}

func times(f *float64) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *f)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
