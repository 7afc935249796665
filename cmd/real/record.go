package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

const (
	// contextTokens is --max-model-len of the server that answers the script.
	contextTokens = 512
	scriptSeqs    = 4
)

// The servers that are recorded. The first answers the script, the second has a
// small cache and tells its events, the third is slow and takes two at once.
var (
	scriptShape = shape{model: tinyModel, blocks: 129, maxLen: contextTokens, seqs: scriptSeqs, budget: 512, tools: true}
	cacheShape  = shape{model: tinyModel, blocks: 33, maxLen: 896, seqs: 4, budget: 512, developer: true}
	leaveShape  = shape{model: tinyModel, blocks: 129, maxLen: 2048, seqs: 2, budget: 16}
)

// recorder writes the recordings of one version.
type recorder struct {
	*home
	out  string // testdata/vllm/VERSION
	logs string
	say  func(format string, args ...any)
}

func newRecord(h *home) *cobra.Command {
	out := ""
	var parts []string
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Records what vLLM answers to a fixed script",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := h.install(cmd.Context(), tinyModel); err != nil {
				return err
			}
			logs, err := os.MkdirTemp("", "llm-prefix-real-")
			if err != nil {
				return fmt.Errorf("making a folder for logs: %w", err)
			}
			if out == "" {
				out = filepath.Join(h.source, "testdata", "vllm")
			}
			r := &recorder{home: h, out: filepath.Join(out, h.version), logs: logs, say: func(format string, args ...any) {
				fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...)
			}}
			if err := r.record(cmd.Context(), parts); err != nil {
				return fmt.Errorf("%w (logs are in %s)", err, logs)
			}
			return os.RemoveAll(logs)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder for the version's folder; testdata/vllm of the source if empty")
	cmd.Flags().StringSliceVar(&parts, "parts", []string{"script", "cache", "leave"}, "what to record")
	return cmd
}

func (r *recorder) record(ctx context.Context, parts []string) error {
	for _, name := range parts {
		part := map[string]func(context.Context, string) error{
			"script": r.recordScript, "cache": r.recordCache, "leave": r.recordLeaving,
		}[name]
		if part == nil {
			return fmt.Errorf("recording: no part is called %q", name)
		}
		dir := filepath.Join(r.logs, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making a folder for logs: %w", err)
		}
		if err := part(ctx, dir); err != nil {
			return fmt.Errorf("recording %s of %s: %w", name, r.version, err)
		}
	}
	return nil
}

func (r *recorder) write(name string, content []byte) error {
	path := filepath.Join(r.out, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("writing a recording: %w", err)
	}
	return nil
}

func (r *recorder) start(ctx context.Context, dir string, s shape) (*server, error) {
	r.say("starting vLLM %s: %s", r.version, strings.Join(s.args(), " "))
	begin := time.Now()
	v, err := r.serve(ctx, dir, s)
	if err == nil {
		r.say("ready after %.0f s", time.Since(begin).Seconds())
	}
	return v, err
}

// recordScript records pages of metrics and one file for each exchange.
func (r *recorder) recordScript(ctx context.Context, dir string) error {
	v, err := r.start(ctx, dir, scriptShape)
	if err != nil {
		return err
	}
	defer v.Stop()
	if err := r.recordPages(ctx, v.address); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(r.out, "exchanges")); err != nil {
		return fmt.Errorf("removing old recordings: %w", err)
	}
	stop, err := findStop(ctx, v.address)
	if err != nil {
		return err
	}
	for _, x := range script() {
		x.body = stop.Replace(x.body)
		a, err := x.send(ctx, v.address)
		if err != nil {
			return err
		}
		r.say("%3d %s", a.status, x.name)
		text := bytes.ReplaceAll(r.scrub(x.write(a)), []byte(v.address), []byte("HOST"))
		if err := r.write(filepath.Join("exchanges", x.name+".txt"), text); err != nil {
			return err
		}
	}
	return nil
}

// recordPages records the metrics of a server that has done nothing, of one
// that has two requests waiting, and after they are done.
func (r *recorder) recordPages(ctx context.Context, address string) error {
	idle, err := page(ctx, address)
	if err != nil {
		return err
	}
	var clients []*client
	for i := range scriptSeqs + 2 {
		clients = append(clients, launch(ctx, address, 40+i, 400, true))
	}
	load, err := until(ctx, address, "a queue", func(g gauges) bool { return g.Running == scriptSeqs && g.Waiting == 2 })
	if err != nil {
		return err
	}
	for _, c := range clients {
		if err := <-c.done; err != nil {
			return fmt.Errorf("loading the server: %w", err)
		}
	}
	after, err := until(ctx, address, "the queue's end", func(g gauges) bool { return g.Running+g.Waiting == 0 && !g.KVInUse })
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"idle": idle, "load": load, "after": after} {
		if err := r.write(filepath.Join("metrics", name+".prom"), r.scrubMetrics([]byte(text))); err != nil {
			return err
		}
	}
	return nil
}

// recordCache records the cached tokens of sequences of prompts, and what KV
// events tell of each.
func (r *recorder) recordCache(ctx context.Context, dir string) error {
	endpoint, err := process.FreeAddress()
	if err != nil {
		return err
	}
	s := cacheShape
	s.events = "tcp://" + strings.Replace(endpoint, "127.0.0.1", "*", 1)
	v, err := r.start(ctx, dir, s)
	if err != nil {
		return err
	}
	defer v.Stop()
	events, err := r.listen(ctx, dir, "tcp://"+endpoint)
	if err != nil {
		return err
	}
	defer events.Stop()
	for _, q := range sequences(s.blocks) {
		events.drain()
		if err := play(ctx, v.address, &q); err != nil {
			return err
		}
		r.say("%-24s %d steps", q.Name, len(q.Steps))
		var b bytes.Buffer
		fmt.Fprintf(&b, "{\"name\": %q, \"blocks\": %d, \"steps\": [\n", q.Name, q.Blocks)
		for i := range q.Steps {
			line, err := json.Marshal(&q.Steps[i])
			if err != nil {
				return err
			}
			b.Write(line)
			if i+1 < len(q.Steps) {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
		}
		b.WriteString("]}\n")
		if err := r.write(filepath.Join("cache", q.Name+".json"), b.Bytes()); err != nil {
			return err
		}
		if err := r.write(filepath.Join("events", q.Name+".jsonl"), events.take()); err != nil {
			return err
		}
	}
	return nil
}
