package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/replay"
)

// serve holds the flags of "demo run".
type serve struct {
	caddyfile string
	listen    string
	count     int
	preset    string
	url       string
}

func newRun(bin *string) *cobra.Command {
	s := &serve{}
	cmd := &cobra.Command{
		Use:   "run --caddyfile FILE",
		Short: "Runs simulated vLLM servers and Caddy on a Caddyfile until Ctrl-C",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := findPrograms(*bin)
			if err != nil {
				return err
			}
			return s.run(cmd.Context(), p, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.caddyfile, "caddyfile", "Caddyfile.example", "Caddy's configuration")
	f.StringVar(&s.listen, "listen", "127.0.0.1:9101", "address of the first simulator; the others have the next ports")
	f.IntVar(&s.count, "count", replicas, "simulators")
	f.StringVar(&s.preset, "preset", defaultPreset, "hardware and model to simulate")
	f.StringVar(&s.url, "url", "", "where Caddy listens; read from the Caddyfile's first site if empty")
	return cmd
}

func (s *serve) run(ctx context.Context, p programs, stdout io.Writer) error {
	text, err := os.ReadFile(s.caddyfile)
	if err != nil {
		return fmt.Errorf("reading the Caddyfile: %w", err)
	}
	if s.url == "" {
		s.url = siteURL(string(text))
	}
	sims, err := process.Start(process.Spec{Path: p.vllmsim, Args: []string{"--listen", s.listen, "--count", strconv.Itoa(s.count), "--preset", s.preset}})
	if err != nil {
		return err
	}
	defer sims.Stop()
	if err := sims.Await(ctx, func() bool { return process.Answers(s.listen) }); err != nil {
		return err
	}
	gateway, err := process.Start(process.Spec{Path: p.caddy, Args: []string{"run", "--config", s.caddyfile, "--adapter", "caddyfile"}})
	if err != nil {
		return err
	}
	defer gateway.Stop()
	if err := gateway.Await(ctx, func() bool { return process.Answers(strings.TrimPrefix(s.url, "http://")) }); err != nil {
		return err
	}
	models, err := replay.Models(ctx, replay.Options{URL: "http://" + s.listen})
	if err != nil || len(models) == 0 {
		return errors.Join(errors.New("asking a simulator for its model"), err)
	}
	fmt.Fprintf(stdout, `
%d simulated vLLM servers from %s on, Caddy at %s. Try:

  curl %s/v1/chat/completions -H 'Content-Type: application/json' -d '{"model": "%s", "max_tokens": 20, "messages": [{"role": "user", "content": "Hello!"}]}'

%sCtrl-C stops all.
`, s.count, s.listen, s.url, s.url, models[0], statusLine(s.url, string(text)))

	select {
	case <-ctx.Done():
		return nil
	case <-sims.Ended:
		return sims.Failure("ended")
	case <-gateway.Ended:
		return gateway.Failure("ended")
	}
}

var sitePort = regexp.MustCompile(`(?m)^(?:http://)?([\w.]*):(\d+)\s*\{`)

var statusPath = regexp.MustCompile(`(?s)handle_path\s+(/[^\s*]*/)\*\s*\{[^}]*\bllm_status\b`)

// statusLine tells where the policy's page is, if a Caddyfile has it.
func statusLine(url, text string) string {
	m := statusPath.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return "What the policy knows and decides: " + url + m[1] + "\n"
}

// siteURL finds the first site address with a port in a Caddyfile.
func siteURL(text string) string {
	m := sitePort.FindStringSubmatch(text)
	if m == nil {
		return "http://127.0.0.1:8080"
	}
	host := m[1]
	if host == "" {
		host = "127.0.0.1"
	}
	return "http://" + host + ":" + m[2]
}
