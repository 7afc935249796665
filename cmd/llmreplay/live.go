package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/plot"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/replay"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

// live holds the flags of the command.
type live struct {
	replay.Options
	trace         string
	format        string
	conversations int
	replies       string
	name          string
	json          bool
	picture       picture
}

func newLive() *cobra.Command {
	l := &live{}
	cmd := &cobra.Command{
		Use:   "live --trace FILE --url URL",
		Short: "Sends conversations to an OpenAI-compatible server and reports TTFT, TPOT, cached tokens and errors",
		Long: `Sends conversations to an OpenAI-compatible server and reports what its clients
saw: time to first token, time per output token, end-to-end time, the share of
prompt tokens that came from the prefix cache, and errors by class.

Classes of errors: connect, connection_lost, timeout, status_NNN (with the
body's text), error_in_stream, stream_without_done, bad_response.

The exit status is 1 when every request failed, else 0.`,
		Example: "  llmreplay live --trace testdata/conversations/support.jsonl --url http://127.0.0.1:8080",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&l.trace, "trace", "", "file of conversations, plain or gzip (see llmreplay traces)")
	f.StringVar(&l.format, "format", "", "format of the file; told from its first record if empty")
	f.StringVar(&l.URL, "url", "", "the server's base URL; /v1 is added unless it ends with it")
	f.StringVar(&l.Model, "model", "", "model to ask for; the first of /v1/models if empty")
	f.StringVar(&l.APIKey, "api-key", "", "key sent as bearer token")
	f.Float64Var(&l.Speed, "speed", 1, "divides recorded times between turns; 0 ignores them")
	f.IntVar(&l.Concurrency, "concurrency", replay.DefaultConcurrency, "conversations at once; turns of one never overlap")
	f.IntVar(&l.conversations, "conversations", 0, "send only the first so many conversations; 0 for all")
	f.IntVar(&l.MaxTokens, "max-tokens", 0, "longest reply; 0 asks for the recorded reply's length, 256 where none is recorded")
	f.BoolVar(&l.NoStream, "no-stream", false, "ask for whole answers; TTFT and TPOT are unknown then")
	f.StringVar(&l.replies, "replies", "recorded", "what a conversation goes on with: recorded or server")
	f.DurationVar(&l.Timeout, "timeout", replay.DefaultTimeout, "longest time for one request")
	f.StringVar(&l.name, "name", "live", "what the report calls this run")
	f.BoolVar(&l.json, "json", false, "print the report as one JSON object")
	f.StringVar(&l.UpstreamHeader, "upstream-header", "", "response header that tells the upstream, as llm_prefix's option expose sets it; for the figures")
	l.picture.addFlags(f)
	for _, name := range []string{"trace", "url"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

func (l *live) run(ctx context.Context, stdout, stderr io.Writer) error {
	switch l.replies {
	case "recorded":
	case "server":
		l.ServerReplies = true
	default:
		return fmt.Errorf("--replies is recorded or server, not %q", l.replies)
	}
	if l.conversations < 0 {
		return errors.New("--conversations must not be negative")
	}
	if err := l.Validate(); err != nil {
		return err
	}
	t, err := trace.ReadFile(l.trace, trace.Options{Format: l.format, MaxConversations: l.conversations})
	if err != nil {
		return err
	}
	if l.Model == "" {
		models, err := replay.Models(ctx, l.Options)
		if err != nil {
			return fmt.Errorf("%w (name one with --model)", err)
		}
		if len(models) == 0 {
			return errors.New("the server names no model; name one with --model")
		}
		l.Model = models[0]
	}

	if f, ok := stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		l.OnRecord = progress(stderr, t.Requests())
	}
	begin := time.Now()
	records, interrupted := replay.Run(ctx, t.Conversations, l.Options)
	report := replay.Report{
		Trace:   filepath.Base(l.trace),
		Results: []replay.Result{replay.Summarize(l.name, records, time.Since(begin))},
	}
	if l.OnRecord != nil {
		fmt.Fprint(stderr, "\r\033[K")
	}
	write := report.WriteText
	if l.json {
		write = report.WriteJSON
	}
	if err := write(stdout); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := l.picture.write(func() *plot.Page { return l.page(&report, records) }); err != nil {
		return err
	}
	if interrupted != nil {
		return fmt.Errorf("replaying: %w", interrupted)
	}
	if r := report.Results[0]; r.Failed == r.Requests {
		return fmt.Errorf("all %d requests failed", r.Requests)
	}
	return nil
}

// page draws the report.
func (l *live) page(report *replay.Report, records []replay.Record) *plot.Page {
	s := sight{result: &report.Results[0]}
	for i := range records {
		r := &records[i]
		if r.TTFT > 0 && r.Class == "" {
			s.ttft = append(s.ttft, float64(r.TTFT)/float64(time.Millisecond))
		}
		name := r.Upstream
		if name == "" {
			name = "all"
		}
		s.stays = append(s.stays, stay{name, r.Sent, r.Sent + r.E2E})
	}
	slices.Sort(s.ttft)
	p := &plot.Page{
		Title: "llmreplay live: " + report.Trace, Parts: comparison([]sight{s}),
		Lead: fmt.Sprintf("%d requests to %s in %.1f s, as clients saw them.", len(records), l.URL, report.Results[0].DurationS),
		Foot: "Measured on the wall clock.",
	}
	p.Head, p.Rows = resultsTable(report.Results)
	return p
}

// progress rewrites one line of a terminal.
func progress(w io.Writer, requests int) func(replay.Record) {
	done, failed := 0, 0
	return func(r replay.Record) {
		done++
		if r.Class != "" {
			failed++
		}
		fmt.Fprintf(w, "\r\033[K%d of %d requests, %d failed", done, requests, failed)
	}
}
