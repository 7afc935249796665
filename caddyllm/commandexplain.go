package caddyllm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func explainCommand(cmd *cobra.Command) {
	var f adminFlags
	f.add(cmd)
	path := cmd.Flags().StringP("path", "", "/v1/chat/completions", "Path of the request")
	fields := cmd.Flags().StringArrayP("header", "H", nil, "Header field of the request, as 'Name: value'; may be repeated")
	upstreams := cmd.Flags().StringArrayP("upstream", "", nil, "Choose among these only; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		header := make(http.Header)
		for _, field := range *fields {
			name, value, ok := strings.Cut(field, ":")
			if !ok || strings.TrimSpace(name) == "" {
				return fmt.Errorf("--header must be as 'Name: value', got %q", field)
			}
			header.Add(textproto.TrimString(name), textproto.TrimString(value))
		}
		cmd.SilenceUsage = true // what goes wrong from here on is no matter of usage
		query := url.Values{"path": {*path}, "upstream": *upstreams}
		if f.state != "" {
			query.Set("state", f.state)
		}
		in := cmd.InOrStdin()
		if file, ok := in.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			fmt.Fprintln(cmd.ErrOrStderr(), "reading the request's body from the terminal; Ctrl-D ends it")
		}
		text, err := f.ask(http.MethodPost, "/llm_prefix/explain?"+query.Encode(), header, in)
		if err != nil {
			return err
		}
		if f.json {
			_, err = cmd.OutOrStdout().Write(text)
			return err
		}
		var e explanation
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("reading Caddy's answer: %w", err)
		}
		printExplanation(cmd.OutOrStdout(), &e)
		return nil
	}
}

// meanings of the reasons, for those who meet them first here.
var meanings = map[string]string{
	"prefix":  "it holds the prompt's beginning",
	"load":    "another holds more of the prompt, but is busy",
	"cold":    "none holds any of the prompt",
	"session": "the session's earlier requests went there",
	"probe":   "to see whether it is well again",
}

var deciders = map[string]string{
	"cost":     "It costs least.",
	"tie":      "Others cost the same within 3 %: the sooner first token, then a hash of the prompt decides.",
	"session":  "It is kept for the session, though another costs less.",
	"response": "It alone has the response that the prompt goes on from.",
}

func printExplanation(w io.Writer, e *explanation) {
	if e.Fallback != "" {
		fmt.Fprintf(w, "%s goes to the fallback policy: %s\n", e.Path, e.Fallback)
		return
	}
	p := e.Prompt
	fmt.Fprintf(w, "%s, %s: %d tokens", e.Path, e.Kind, p.Tokens)
	if p.Blocks > 0 {
		fmt.Fprintf(w, " in %d blocks, begins %.8s, prompt %.8s", p.Blocks, p.FirstBlock, p.Hash)
	}
	fmt.Fprintln(w)
	if e.Choice == nil {
		fmt.Fprintln(w, "No upstream is available.")
	} else {
		fmt.Fprintf(w, "goes to %s for %s: %s. %s\n", e.Choice.Upstream, e.Choice.Reason, meanings[e.Choice.Reason], deciders[e.Choice.DecidedBy])
		fmt.Fprintf(w, "first token predicted in %s\n", span(&e.Choice.FirstToken))
	}
	fmt.Fprintln(w)
	t := table{right: []bool{false, false, true, true, true, true, true, true, true, true, true}}
	t.row("UPSTREAM", "", "MATCHED", "QUEUE", "PREFILL", "STALL", "COPY", "MEMORY", "STEP", "COST", "FIRST TOKEN")
	for i := range e.Upstreams {
		u := &e.Upstreams[i]
		if u.Cost == 0 { // not chosen at all
			t.row(u.Address, u.Standing, "-", "-", "-", "-", "-", "-", "-", "-", "-")
			continue
		}
		cells := []string{u.Address, u.Standing, fmt.Sprint(u.MatchedTokens)}
		for _, term := range []float64{u.Queue, u.Prefill, u.Stall, u.Copy, u.Memory, u.Step, u.Cost, u.FirstToken} {
			cells = append(cells, fmt.Sprintf("%.4f", term))
		}
		t.row(cells...)
	}
	t.print(w)
	fmt.Fprintln(w, "\nTerms in seconds; queue to step add up to the cost.")
}
