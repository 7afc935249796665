package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/judge"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/plot"
)

// table holds the flags of the command.
type table struct {
	judge.Options
	knees   string
	read    string
	known   bool
	json    bool
	picture picture
}

func newTable() *cobra.Command {
	t := &table{}
	cmd := &cobra.Command{
		Use:   "table",
		Short: "Judges llm_prefix by oracles and rivals over all workloads and sizes, against bounds",
		Long: `Judges llm_prefix by oracles and rivals: nine workloads, 4 to 64 replicas, at 55
and 90 % of the knee, engines that come, go, slow down and restart, metrics that
are missing or lie, answers without usage, several gateways. Prints tables of
ratios and then each bound with ok or MISSED; the exit status is 1 if one is
missed.

Workloads whose file isn't in the data folder are left out, and so are cells for
which there is no time; both are said. The first seed of everything comes before the
second of anything.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&t.Data, "data", "../shared/data", "folder with traces/ and text/")
	f.BoolVar(&t.Short, "short", false, "only what takes about three minutes")
	f.StringVar(&t.Only, "part", "", "only this part: oracle, copying, rivals, scenarios, metrics, capacity or gateways")
	f.DurationVar(&t.Budget, "budget", 25*time.Minute, "time after which no replay is begun; 0 for no bound")
	f.IntVar(&t.Replicas, "replicas", 0, "only this number of replicas; 0 for all")
	f.StringVar(&t.read, "read", "", "run nothing, and show what --json wrote to this file")
	f.IntVar(&t.Parallel, "parallel", 1, "traces at once, each with all replays on it")
	f.StringVar(&t.knees, "find-knees", "", "search the knees instead, and write them to this file")
	f.BoolVar(&t.known, "known", false, "with --find-knees: keep those that are known")
	f.BoolVar(&t.json, "json", false, "print cells and bounds as one JSON object")
	t.picture.addFlags(f)
	return cmd
}

func (t *table) run(ctx context.Context, stdout, stderr io.Writer) error {
	if t.knees != "" {
		save := func(all []byte) error { return os.WriteFile(t.knees, all, 0o644) }
		return judge.Knees(ctx, t.Data, t.known, save, func(name string, n int, rate float64) {
			fmt.Fprintf(stderr, "%s, %d replicas: %.2f requests/s\n", name, n, rate)
		})
	}
	if f, ok := stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		t.Progress = func(done, all int) { fmt.Fprintf(stderr, "\r\033[K%d of %d replays", done, all) }
	}
	o, err := t.outcome(ctx)
	if t.Progress != nil {
		fmt.Fprint(stderr, "\r\033[K")
	}
	if err != nil {
		return err
	}
	checks := o.Checks()
	if t.json {
		err = writeJSON(stdout, struct {
			*judge.Outcome
			Checks []judge.Check `json:"bounds"`
		}{o, checks})
	} else {
		err = o.WriteText(stdout)
	}
	if err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	if err := t.picture.write(func() *plot.Page { return t.page(o) }); err != nil {
		return err
	}
	missed := 0
	for _, c := range checks {
		if c.Missed {
			missed++
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d bounds are missed", missed, len(checks))
	}
	return nil
}

// outcome runs the table, or reads one that was run.
func (t *table) outcome(ctx context.Context) (*judge.Outcome, error) {
	if t.read == "" {
		return judge.Run(ctx, t.Options)
	}
	text, err := os.ReadFile(t.read)
	if err != nil {
		return nil, fmt.Errorf("reading the table: %w", err)
	}
	o := &judge.Outcome{}
	if err := json.Unmarshal(text, o); err != nil {
		return nil, fmt.Errorf("reading the table: %w", err)
	}
	o.Only(t.Only, t.Replicas)
	return o, nil
}

// page draws the figures and has the tables below them.
func (t *table) page(o *judge.Outcome) *plot.Page {
	var text strings.Builder
	_ = o.WriteText(&text) // a Builder takes all
	return &plot.Page{
		Title: "llmreplay table", Parts: o.Figures(), Text: text.String(),
		Lead: "llm_prefix against oracles and rivals on simulated engines in virtual time.",
		Foot: fmt.Sprintf("%d cells; %d for which there was no time.", len(o.Lines), o.NotRun),
	}
}
