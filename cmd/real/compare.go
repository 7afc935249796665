package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/replay"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

const (
	ours = "llm_prefix"
	// pinned isn't a policy of Caddy: each conversation goes to one server, and
	// conversations in turn to all. It is what the prefix cache can give when no
	// conversation moves.
	pinned = "each conversation pinned"
	// killed is llm_prefix while one server is killed.
	killed = "llm_prefix, one killed"
)

var policies = []string{ours, "round_robin", "least_conn"}

// comparison holds the flags of the comparison.
type comparison struct {
	*home
	caddy       string
	trace       string
	servers     int
	blocks      int
	concurrency int
	maxTokens   int
	json        bool
}

// The shape of the servers. A server's share of the conversations under way,
// with the companies' system prompts, takes some 18,000 tokens of its cache,
// and all of them take some 30,000. So a conversation stays cached where it
// belongs, and not everywhere.
const (
	defaultBlocks = 641 // 20,480 tokens, and the block that vLLM keeps for itself
	maxModelLen   = 8192
	maxSeqs       = 16
	stepBudget    = 2048
)

func newCompare(h *home) *comparison {
	return &comparison{home: h}
}

func (c *comparison) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.caddy, "caddy", "", "binary of Caddy with llm_prefix; caddy beside this program if empty")
	f.StringVar(&c.trace, "trace", "", "file of conversations (see llmreplay traces); by default those of the repository with passages looked up")
	// Each takes a core, and starting one takes minutes where cores are few.
	f.IntVar(&c.servers, "servers", 2, "vLLM servers, at least 2")
	f.IntVar(&c.blocks, "blocks", defaultBlocks, "KV blocks of 32 tokens of each server; where one cache holds all of the trace, no policy can beat one server's hits")
	f.IntVar(&c.concurrency, "concurrency", 64, "conversations at once, at most; they begin at their times where they have any")
	f.IntVar(&c.maxTokens, "max-tokens", 16, "length of each reply")
	f.BoolVar(&c.json, "json", false, "print the report as one JSON object")
}

// outcome is one replay: what the clients saw, what the servers counted, and
// what the gateway predicted. Tokens are sums over the replay.
type outcome struct {
	replay.Result
	// ServerQueries and ServerHits are the servers' own counters, in tokens.
	ServerQueries float64 `json:"server_prefix_cache_queries"`
	ServerHits    float64 `json:"server_prefix_cache_hits"`
	// Predicted and Cached are the gateway's; nil under other policies.
	Predicted *float64 `json:"gateway_predicted_cached_tokens,omitempty"`
	Cached    *float64 `json:"gateway_cached_tokens,omitempty"`
	// Lost are requests that failed before their answer began: without the header
	// of a good one.
	Lost int `json:"lost_before_answer"`
	// Waiting are requests whose answer had not begun on the server that was
	// killed, as it was killed.
	Waiting int `json:"waiting_when_killed,omitempty"`
}

func (c *comparison) run(ctx context.Context, stdout, stderr io.Writer) error {
	if c.servers < 2 {
		return errors.New("--servers must be at least 2")
	}
	if c.caddy == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding this program's folder: %w", err)
		}
		c.caddy = filepath.Join(filepath.Dir(self), "caddy")
	}
	t, err := c.load()
	if err != nil {
		return err
	}
	if err := c.install(ctx, slowModel); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "llm-prefix-real-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	outcomes, err := c.measureAll(ctx, dir, t, stderr)
	if ctx.Err() != nil {
		_ = os.RemoveAll(dir)
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%w (logs are in %s)", err, dir)
	}
	defer os.RemoveAll(dir)
	if c.json {
		e := json.NewEncoder(stdout)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		err = e.Encode(map[string]any{"trace": c.traceName(), "vllm": c.version, "replicas": c.servers, "results": outcomes})
	} else {
		err = c.table(stdout, outcomes)
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return judge(stdout, outcomes, c.json)
}

// load is the trace to replay.
func (c *comparison) load() (*trace.Trace, error) {
	if c.trace == "" {
		return c.workload()
	}
	return trace.ReadFile(c.trace, trace.Options{})
}

func (c *comparison) traceName() string {
	if c.trace == "" {
		return "support conversations with passages looked up"
	}
	return filepath.Base(c.trace)
}

// measureAll starts the servers once and replays the trace in each way on them,
// with their caches emptied before. The last replay kills one.
func (c *comparison) measureAll(ctx context.Context, dir string, t *trace.Trace, stderr io.Writer) ([]outcome, error) {
	servers, err := c.startServers(ctx, dir, stderr)
	defer func() {
		var all sync.WaitGroup
		for _, v := range servers {
			all.Go(v.Stop)
		}
		all.Wait()
	}()
	if err != nil {
		return nil, err
	}
	speed, err := c.pace(ctx, t, servers)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(stderr, "replaying %d requests at a speed of %.2f, %.0f s each time\n", t.Requests(), speed, length(t).Seconds()/speed)
	if speed == slowest {
		fmt.Fprintln(stderr, "the servers are slower than that: requests under way will fill the caches, and bounds may be missed for it")
	}
	var outcomes []outcome
	for _, name := range slices.Concat([]string{pinned}, policies, []string{killed}) {
		if err := empty(ctx, servers); err != nil {
			return nil, err
		}
		begin := time.Now()
		o, err := c.measure(ctx, filepath.Join(dir, fmt.Sprint("replay-", len(outcomes))), name, speed, t, servers)
		if err != nil {
			return nil, fmt.Errorf("replaying with %s: %w", name, err)
		}
		fmt.Fprintf(stderr, "%s: %d requests in %.0f s\n", name, o.Requests, time.Since(begin).Seconds())
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// startServers starts them all at once: most of the time Python reads files.
func (c *comparison) startServers(ctx context.Context, dir string, stderr io.Writer) ([]*server, error) {
	fmt.Fprintf(stderr, "starting %d vLLM %s servers\n", c.servers, c.version)
	s := shape{model: slowModel, blocks: c.blocks, maxLen: maxModelLen, seqs: maxSeqs, budget: stepBudget, developer: true}
	var servers []*server
	for i := range c.servers {
		own := filepath.Join(dir, fmt.Sprint("server-", i))
		if err := os.MkdirAll(own, 0o755); err != nil {
			return servers, fmt.Errorf("making a folder: %w", err)
		}
		// Nobody listens; the events are there as they are where people route by
		// them, and cost what they cost.
		s.events = "ipc://" + filepath.Join(own, "events")
		v, err := c.begin(own, s)
		if err != nil {
			return servers, err
		}
		servers = append(servers, v)
	}
	for _, v := range servers {
		if err := v.ready(ctx); err != nil {
			return servers, err
		}
	}
	return servers, nil
}

// empty empties the servers' caches.
func empty(ctx context.Context, servers []*server) error {
	for _, v := range servers {
		x := exchange{name: "reset of a cache", method: http.MethodPost, path: "/reset_prefix_cache"}
		a, err := x.send(ctx, v.address)
		if err != nil {
			return err
		}
		if a.status != http.StatusOK {
			return fmt.Errorf("emptying a cache: status %d", a.status)
		}
	}
	return nil
}
