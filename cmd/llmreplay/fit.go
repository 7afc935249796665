package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/fit"
)

// fitting holds the flags of the command.
type fitting struct {
	run    string
	split  string
	figure string
	check  bool
	json   bool
}

func newFit() *cobra.Command {
	f := &fitting{}
	cmd := &cobra.Command{
		Use:   "fit --run DIR",
		Short: "Calibrates the engine model to a recorded vLLM run and tells its errors",
		Long: `Calibrates the engine model to a recorded vLLM run: finds the coefficients of
the time of a step, and the number of KV blocks where it isn't recorded, with
which the simulated run comes closest to the recorded one, and tells how close.

DIR holds requests.jsonl (input_toks, output_toks, arrival_time, queued_ts,
scheduled_ts, first_token_ts, last_token_ts of each request, in seconds), and
where there are any timeseries.csv (t, running, waiting, kv_cache_pct), meta.json
(how vLLM was started) and workload_tokens.jsonl, plain or gzip (input_tok_ids).

With --json the output is what --preset of vllmsim and of llmreplay virtual
takes, in a file.

The exit status is 1 if the recording can't be read or, with --check, if a bound
is missed: 2 % for the latency of a request on average (3 % with --split half),
3 % for mean and p50 and 5 % for p90 and p99 of TTFT and TPOT.`,
		Example: "  llmreplay fit --run recordings/my-gpu --json > my-gpu.json\n  vllmsim --preset my-gpu.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.do(cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.run, "run", "", "folder of the recording")
	fl.StringVar(&f.split, "split", "none", "none, or half: fit to the first half of the requests, judge by the second")
	fl.StringVar(&f.figure, "figure", "", "write the recorded and simulated curves to this file, as SVG")
	fl.BoolVar(&f.check, "check", false, "fail if a bound is missed")
	fl.BoolVar(&f.json, "json", false, "print the report as one JSON object")
	if err := cmd.MarkFlagRequired("run"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

func (f *fitting) do(stdout, stderr io.Writer) error {
	bounds := fit.WholeBounds
	switch f.split {
	case "none":
	case "half":
		bounds = fit.HalfBounds
	default:
		return fmt.Errorf("checking --split: %q, want none or half", f.split)
	}
	run, err := fit.Read(f.run)
	if err != nil {
		return err
	}
	var o fit.Options
	var judged func(int) bool
	if f.split == "half" {
		half := len(run.Requests) / 2
		o.Judged = func(i int) bool { return i < half }
		judged = func(i int) bool { return i >= half }
	}
	if file, ok := stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		o.Progress = func(n int, score float64) {
			fmt.Fprintf(stderr, "\r\033[K%d simulations, error %.4f", n, score)
		}
	}
	config, timeline, err := run.Fit(o)
	if o.Progress != nil {
		fmt.Fprint(stderr, "\r\033[K")
	}
	if err != nil {
		return err
	}
	report := run.Report(config, timeline, judged)
	write := report.WriteText
	if f.json {
		write = report.WriteJSON
	}
	if err := write(stdout); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if f.figure != "" {
		draw := func(w io.Writer) error { return run.Figure(w, timeline) }
		if err := create(f.figure, draw); err != nil {
			return fmt.Errorf("drawing the figure: %w", err)
		}
	}
	if missed := report.Check(bounds); f.check && len(missed) > 0 {
		return errors.New("missed: " + strings.Join(missed, "; "))
	}
	return nil
}
