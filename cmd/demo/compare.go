package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/gateway"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/replay"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

// policies are compared in this order; the first is ours.
var policies = []string{"llm_prefix", "round_robin", "least_conn", "ip_hash"}

const (
	replicas     = 3
	defaultTrace = "testdata/conversations/support.jsonl"
)

// compare holds the flags of the comparison.
type compare struct {
	trace         string
	conversations int
	concurrency   int
	speed         float64
	maxTokens     int
	preset        string
	kvTokens      int
	json          bool
}

func newCompare(bin *string) *cobra.Command {
	c := &compare{}
	cmd := &cobra.Command{
		Use:           "demo",
		Short:         "Compares load balancing policies of Caddy on a short replay to simulated vLLM servers",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := findPrograms(*bin)
			if err != nil {
				return err
			}
			return c.run(cmd.Context(), p, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.trace, "trace", "", "file of conversations (see llmreplay traces); "+defaultTrace+" if empty")
	f.IntVar(&c.conversations, "conversations", 0, "replay only the first so many; 0 for all")
	f.IntVar(&c.concurrency, "concurrency", 32, "conversations at once")
	f.Float64Var(&c.speed, "speed", 40, "divides the recorded times between turns; 0 ignores them")
	f.IntVar(&c.maxTokens, "max-tokens", 16, "length of each reply; short, since it is the prompts that differ")
	f.StringVar(&c.preset, "preset", defaultPreset, "hardware and model to simulate")
	f.IntVar(&c.kvTokens, "kv-tokens", defaultKVTokens, "tokens that each server's KV cache holds, 0 for the preset's; where one cache holds all of the trace, no policy can beat one server's hits")
	f.BoolVar(&c.json, "json", false, "print the report as one JSON object")
	return cmd
}

func (c *compare) run(ctx context.Context, p programs, stdout, stderr io.Writer) error {
	path := c.trace
	if path == "" {
		path = findTrace(p)
	}
	t, err := trace.ReadFile(path, trace.Options{MaxConversations: max(0, c.conversations)})
	if err != nil {
		return err
	}
	results, verdict, err := decide(stderr, func() (results []replay.Result, err error) {
		for _, policy := range policies {
			result, err := c.measure(ctx, p, policy, t, stderr)
			if err != nil {
				return nil, fmt.Errorf("replaying with %s: %w", policy, err)
			}
			results = append(results, result)
		}
		return results, nil
	})
	if err != nil {
		return err
	}
	report := replay.Report{Trace: filepath.Base(path), Replicas: replicas, Results: results}
	if c.json {
		err = report.WriteJSON(stdout)
	} else {
		err = writeTable(stdout, &report, c.engine())
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return verdict
}

// engine says what the simulators simulate.
func (c *compare) engine() string {
	if c.kvTokens <= 0 {
		return c.preset
	}
	return fmt.Sprintf("%s, KV cache of %s tokens", c.preset, humanize.Comma(int64(c.kvTokens)))
}

// findTrace looks in the working folder, then beside the folder of binaries.
func findTrace(p programs) string {
	if _, err := os.Stat(defaultTrace); err == nil {
		return defaultTrace
	}
	return filepath.Join(filepath.Dir(p.caddy), "..", defaultTrace)
}

// measure replays the trace with one policy on fresh servers.
func (c *compare) measure(ctx context.Context, p programs, policy string, t *trace.Trace, stderr io.Writer) (replay.Result, error) {
	var none replay.Result
	dir, err := os.MkdirTemp("", "llm-prefix-demo-")
	if err != nil {
		return none, fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(dir)

	args := []string{"--preset", c.preset, "--seed", "1"}
	if c.kvTokens > 0 {
		args = append(args, "--kv-tokens", strconv.Itoa(c.kvTokens))
	}
	sims, err := startSimulators(ctx, dir, p.vllmsim, replicas, args...)
	if err != nil {
		return none, err
	}
	defer sims.Stop()
	proxy, err := gateway.Start(ctx, dir, p.caddy, gateway.Config{Policy: policy, Upstreams: sims.addresses})
	if err != nil {
		return none, err
	}
	defer proxy.Stop()

	o := replay.Options{URL: "http://" + proxy.Address, Concurrency: c.concurrency, Speed: c.speed, MaxTokens: c.maxTokens}
	models, err := replay.Models(ctx, replay.Options{URL: "http://" + sims.addresses[0]})
	if err != nil {
		return none, err
	}
	if len(models) == 0 {
		return none, errors.New("the simulator names no model")
	}
	o.Model = models[0]
	done := progress(stderr, policy, t.Requests())
	o.OnRecord = done.record

	begin := time.Now()
	records, err := replay.Run(ctx, t.Conversations, o)
	done.end()
	if err != nil {
		return none, err
	}
	result := replay.Summarize(policy, records, time.Since(begin))
	counts, err := sims.requests(ctx)
	if err != nil {
		return none, err
	}
	result.SetUpstreams(counts)
	return result, nil
}

// progress shows how far the replay with a policy is: one line that is
// rewritten on a terminal, one line at the end of each policy elsewhere.
func progress(w io.Writer, policy string, requests int) *progressLine {
	f, ok := w.(*os.File)
	return &progressLine{w: w, policy: policy, requests: requests, terminal: ok && term.IsTerminal(int(f.Fd())), begin: time.Now()}
}

type progressLine struct {
	w        io.Writer
	policy   string
	requests int
	done     int
	terminal bool
	begin    time.Time
}

func (p *progressLine) record(replay.Record) {
	p.done++
	if p.terminal {
		fmt.Fprintf(p.w, "\r\033[K%-12s %d of %d requests", p.policy, p.done, p.requests)
	}
}

func (p *progressLine) end() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\033[K")
	}
	fmt.Fprintf(p.w, "%-12s %d of %d requests in %.1f s\n", p.policy, p.done, p.requests, time.Since(p.begin).Seconds())
}
