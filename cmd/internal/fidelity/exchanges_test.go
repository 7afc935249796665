package fidelity

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/recording"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"
)

// TestAnswersHaveTheFormOfVLLMs sends the simulator what was sent to vLLM:
// status, headers, keys and kinds of all values, words that are part of the
// form, the order of events, and whole error bodies must be the same.
func TestAnswersHaveTheFormOfVLLMs(t *testing.T) {
	exchanges, err := recording.Exchanges(recorded(newest))
	if err != nil || len(exchanges) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	listed := listedDifferences(t)
	server := simulated(t, recordedServer(), vllmmetrics.Main)
	for i := range exchanges {
		x := &exchanges[i]
		t.Run(x.Name, func(t *testing.T) {
			differences := compare(x, ask(server, x.Method, x.Path, x.Header, x.Request))
			switch reason := listed[x.Name]; {
			case len(differences) > 0 && reason == "":
				t.Error(strings.Join(differences, "\n"))
			case len(differences) == 0 && reason != "":
				t.Errorf("docs/fidelity.md lists a difference and there is none: %s", reason)
			}
			delete(listed, x.Name)
		})
	}
	for name := range listed {
		t.Errorf("docs/fidelity.md lists %s, which is not recorded", name)
	}
}

// compare lists how an answer differs from vLLM's.
func compare(x *recording.Exchange, w *httptest.ResponseRecorder) []string {
	var all []string
	differ := func(what, got, want string) {
		if got != want {
			all = append(all, fmt.Sprintf("%s:\n got  %s\n vLLM %s", what, got, want))
		}
	}
	differ("status", fmt.Sprint(w.Code), fmt.Sprint(x.Status))
	for _, name := range []string{"Content-Type", "Allow", "Endpoint-Load-Metrics", "X-Request-Id"} {
		differ(name, w.Header().Get(name), x.Answer.Get(name))
	}
	switch {
	case x.Method == http.MethodHead: // the web server leaves the body out
	case strings.HasPrefix(x.Answer.Get("Content-Type"), "text/event-stream"):
		got, want := eventForms(w.Body.Bytes()), eventForms(x.Body)
		if bytes.Contains(x.Request, []byte(`"n": 2`)) {
			got, want = anyOrder(got), anyOrder(want)
		}
		differ("events", strings.Join(got, "\n      "), strings.Join(want, "\n      "))
	case x.Status >= 400:
		differ("body", strings.TrimSpace(w.Body.String()), strings.TrimSpace(string(x.Body)))
	default:
		differ("body", form(w.Body.String()), form(string(x.Body)))
	}
	return all
}

// anyOrder leaves the order out: how the pieces of several choices take turns is
// a matter of time.
func anyOrder(events []string) []string {
	sorted := slices.Sorted(slices.Values(events))
	return slices.Compact(sorted)
}

// eventForms are the forms of a stream's events in order; events that look alike
// and follow each other are one, as replies have pieces of their own.
func eventForms(body []byte) []string {
	data, names := recording.Events(body)
	var all []string
	for i := range data {
		s := form(data[i])
		if names[i] != "" {
			s = names[i] + " " + s
		}
		if len(all) == 0 || all[len(all)-1] != s {
			all = append(all, s)
		}
	}
	return all
}

// listedDifferences reads the table of docs/fidelity.md under "Exchanges that
// differ": names in the first column, the reason in the last.
func listedDifferences(t *testing.T) map[string]string {
	t.Helper()
	return table(t, "### Exchanges that differ")
}

// table reads the first table after a heading of docs/fidelity.md.
func table(t *testing.T, heading string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "fidelity.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), heading+"\n")
	if !ok {
		t.Fatalf("docs/fidelity.md has no heading %q", heading)
	}
	rows := make(map[string]string)
	inside := false
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if inside {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if inside && !strings.HasPrefix(line, "|--") {
			for name := range strings.SplitSeq(cells[0], ",") {
				rows[strings.Trim(name, " `")] = strings.TrimSpace(cells[len(cells)-1])
			}
		}
		inside = true
	}
	if len(rows) == 0 {
		t.Fatalf("no table after %q", heading)
	}
	return rows
}
