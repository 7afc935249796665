package caddyllm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// minWatch is the least time between two looks, that of two events of the page.
const minWatch = statusEvery

func statusCommand(cmd *cobra.Command) {
	var f adminFlags
	f.add(cmd)
	watching := cmd.Flags().BoolP("watch", "w", false, "Print again and again until Ctrl-C")
	interval := cmd.Flags().DurationP("interval", "", 2*time.Second, "Time between two looks, 1s at least")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *interval < minWatch {
			return fmt.Errorf("--interval must be at least %v", minWatch)
		}
		cmd.SilenceUsage = true // what goes wrong from here on is no matter of usage
		uri := "/llm_prefix/state"
		if f.state != "" {
			uri += "?state=" + url.QueryEscape(f.state)
		}
		look := func(w io.Writer) error {
			text, err := f.ask(http.MethodGet, uri, nil, nil)
			if err != nil {
				return err
			}
			if f.json {
				_, err = w.Write(text)
				return err
			}
			return printStatus(w, text)
		}
		out := cmd.OutOrStdout()
		if !*watching {
			return look(out)
		}
		file, ok := out.(*os.File)
		return watch(cmd.Context(), out, *interval, ok && term.IsTerminal(int(file.Fd())), look)
	}
}

// watch looks until ctx ends. Only a first look that fails is an error: later
// ones may fall into a restart of Caddy.
func watch(ctx context.Context, out io.Writer, interval time.Duration, clear bool, look func(io.Writer) error) error {
	if ctx == nil {
		ctx = context.Background()
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for first := true; ; first = false {
		var page strings.Builder
		if err := look(&page); err != nil {
			if first {
				return err
			}
			fmt.Fprintln(&page, err)
		}
		if clear {
			// Home, then clear what is left of each line and below: a screen
			// that is cleared first flickers.
			text := strings.ReplaceAll(page.String(), "\n", "\x1b[K\n")
			page.Reset()
			page.WriteString("\x1b[H" + text + "\x1b[J")
		} else if !first {
			fmt.Fprintln(out)
		}
		if _, err := io.WriteString(out, page.String()); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func printStatus(w io.Writer, text []byte) error {
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("reading Caddy's answer: %w", err)
	}
	if len(r.States) == 0 {
		fmt.Fprintln(w, "No loaded configuration has lb_policy llm_prefix.")
	}
	for i := range r.States {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printState(w, &r.States[i])
	}
	return nil
}

func printState(w io.Writer, s *stateReport) {
	fmt.Fprintf(w, "%s: %d requests in %d min", s.Name, s.Decisions, s.WindowSeconds/60)
	if words := reasonWords(s.Reasons, s.Decisions); words != "" {
		fmt.Fprintf(w, ": %s", words)
	}
	fmt.Fprintf(w, "\nprompt tokens from cache %s, predicted %s; first token %s, predicted %s\n",
		percent(s.Cached.ActualRatio), percent(s.Cached.PredictedRatio), span(s.FirstToken.ActualSeconds), span(s.FirstToken.PredictedSeconds))
	for _, advice := range s.Advice {
		fmt.Fprintf(w, "! %s\n", advice)
	}
	fmt.Fprintln(w)
	t := table{right: []bool{false, false, true, true, true, true, true, true, true, true, true, true, true, false}}
	t.row("UPSTREAM", "STATE", "PREFILL", "DECODE", "WAITING", "RUNNING", "KV", "SCRAPED", "WAIT", "TOK/S", "PREDICTED", "CACHED", "SHARE", "REASONS")
	for i := range s.Upstreams {
		u := &s.Upstreams[i]
		t.row(u.Address, u.State, fmt.Sprint(u.InFlight.Prefill), fmt.Sprint(u.InFlight.Decode), whole(u.Waiting), whole(u.Running),
			percent(u.KVUsage), span(u.ScrapeAge), span(&u.PredictedWait), fmt.Sprintf("%.0f", u.PrefillRate),
			percent(u.Cached.PredictedRatio), percent(u.Cached.ActualRatio), percent(&u.Share), reasonWords(u.Reasons, u.Decisions))
		if i == 0 || s.Upstreams[i-1].Hint != u.Hint {
			t.note(u.Hint)
		}
	}
	t.print(w)
}

// reasonWords tells shares, in the order of reasons.
func reasonWords(counts map[string]int, all int) string {
	var words []string
	for _, r := range reasons {
		if n := counts[string(r)]; n > 0 && all > 0 {
			share := float64(n) / float64(all)
			words = append(words, fmt.Sprintf("%s %s", r, percent(&share)))
		}
	}
	return strings.Join(words, ", ")
}

// How numbers are written. What isn't known is a dash.

func percent(ratio *float64) string {
	switch {
	case ratio == nil:
		return "-"
	case *ratio > 0 && *ratio < 0.0995:
		return fmt.Sprintf("%.1f%%", 100**ratio)
	}
	return fmt.Sprintf("%.0f%%", 100**ratio)
}

func whole(n *float64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f", *n)
}

// span is a time, seconds.
func span(s *float64) string {
	switch {
	case s == nil:
		return "-"
	case *s == 0:
		return "0"
	case *s < 0.9995:
		return fmt.Sprintf("%.0fms", max(1, 1e3**s))
	case *s < 9.95:
		return fmt.Sprintf("%.1fs", *s)
	}
	return time.Duration(*s * float64(time.Second)).Round(time.Second).String()
}
