package caddyllm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "llm-status",
		Usage: "[--watch] [--interval <duration>] [--json] [--state <name>] [--config <path> [--adapter <name>]] [--address <interface>]",
		Short: "Shows what lb_policy llm_prefix knows and decides",
		Long: `
Asks a running Caddy what lb_policy llm_prefix knows of its upstreams, and
prints it as a table: state, requests in flight by phase, the engine's queue,
what a next prompt would meet, how much of the prompts was predicted to be
cached and was, and why requests went there in the last five minutes.

With --watch it does so again and again until Ctrl-C; with --json it prints what
GET /llm_prefix/state of the admin API answers.`,
		CobraFunc: statusCommand,
	})
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "llm-explain",
		Usage: "[--path <path>] [--header <field>]... [--upstream <address>]... [--json] [--state <name>] [--config <path> [--adapter <name>]] [--address <interface>]",
		Short: "Explains where a prompt would go and why",
		Long: `
Reads the body of a request from standard input and asks a running Caddy where
lb_policy llm_prefix would send it now, and what each upstream would cost it, in
seconds. Nothing is sent to an upstream, and nothing is learned.

  caddy llm-explain < body.json

The terms of a row add up to its cost, and the least cost wins: the queue before
the request, its own prefill, the stall of answers that are being decoded there,
less what a copy of a popular prefix there is worth, the wait for memory, and the
rest of the step in progress. --path says what the body is, --header gives a field
that matters, such as that of session_header, and --upstream narrows the choice
where several proxies share a state.`,
		CobraFunc: explainCommand,
	})
}

// adminFlags say which Caddy is asked.
type adminFlags struct {
	address, config, adapter, state string
	json                            bool
}

func (f *adminFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.address, "address", "", "", "Address of the admin API, if not that of the config")
	flags.StringVarP(&f.config, "config", "c", "", "Configuration file to find the admin API's address in")
	flags.StringVarP(&f.adapter, "adapter", "a", "", "Name of the adapter for that file")
	flags.StringVarP(&f.state, "state", "", "", "Name of the policy's state")
	flags.BoolVarP(&f.json, "json", "", false, "Print the answer as it is, as JSON")
	cmd.Args = cobra.NoArgs
}

// maxAnswer bounds an answer of the admin API, bytes: some 4 KB for each
// upstream and 300 for each decision.
const maxAnswer = 32 << 20

// ask sends a request to the admin API and returns its answer.
func (f *adminFlags) ask(method, uri string, header http.Header, body io.Reader) ([]byte, error) {
	address, err := caddycmd.DetermineAdminAPIAddress(f.address, nil, f.config, f.adapter)
	if err != nil {
		return nil, fmt.Errorf("finding the admin API's address: %w", err)
	}
	res, err := caddycmd.AdminAPIRequest(address, method, uri, header, body)
	if err != nil {
		return nil, fmt.Errorf("asking Caddy at %s: %w", address, answeredError(err))
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading Caddy's answer: %w", err)
	case len(text) > maxAnswer:
		return nil, errors.New("reading Caddy's answer: it is larger than 32 MiB")
	}
	return text, nil
}

// answeredError is the admin API's own message where an error holds one.
func answeredError(err error) error {
	text := err.Error()
	var answer struct {
		Error string `json:"error"`
	}
	if i := strings.Index(text, `{"error":`); i >= 0 && json.Unmarshal([]byte(text[i:]), &answer) == nil {
		return errors.New(answer.Error)
	}
	return err
}

// table lines up cells for a terminal. Cells of numeric columns are flush right.
type table struct {
	right []bool
	rows  [][]string
	notes map[int]string // below the row of that number
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) note(text string) {
	if text == "" {
		return
	}
	if t.notes == nil {
		t.notes = make(map[int]string)
	}
	t.notes[len(t.rows)-1] = text
}

func (t *table) print(w io.Writer) {
	widths := make([]int, len(t.right))
	for _, cells := range t.rows {
		for i, cell := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, cells := range t.rows {
		var line strings.Builder
		for i, cell := range cells {
			if i > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.right[i] {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
		if note := t.notes[n]; note != "" {
			fmt.Fprintln(w, "    "+note)
		}
	}
}
