package main

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/replay"
)

// A replay draws the same figures from the same seed, as a page and alone, with
// a curve, a bar and a load for each policy.
func TestVirtualDraws(t *testing.T) {
	dir := t.TempDir()
	draw := func(name string) (page, svg string) {
		t.Helper()
		paths := []string{filepath.Join(dir, name+".html"), filepath.Join(dir, name+".svg")}
		if _, err := runReplay(t, "virtual", "--trace", "tenants:prompts=20", "--replicas", "3", "--requests", "200", "--rps", "20",
			"--block-size", "64", "--policies", "llm_prefix,round_robin", "--html", paths[0], "--svg", paths[1]); err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(text))
		}
		return texts[0], texts[1]
	}
	page, svg := draw("a")
	if again, alone := draw("b"); again != page || alone != svg {
		t.Error("a second run draws something else")
	}
	for _, want := range []string{"<title>llmreplay virtual: tenants:prompts=20</title>", "Time to first token",
		"Prompt tokens from the prefix cache", "Requests in flight at each upstream", `<th scope="row">round_robin</th>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, want := range []string{`class="c c0"`, `class="c c1"`, ">llm_prefix; full colour is ", ">round_robin; full colour is "} {
		if !strings.Contains(svg, want) {
			t.Errorf("the figures lack %q", want)
		}
	}
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := runReplay(t, "virtual", "--trace", "hot", "--requests", "50", "--rps", "5", "--svg", filepath.Join(dir, "none", "x.svg")); err == nil {
		t.Error("no error, and the folder isn't there")
	}
}

// What was in flight is spread over the time that it was.
func TestLoadOverTime(t *testing.T) {
	panels := heats([]sight{{
		result: &replay.Result{Policy: "p"},
		stays: []stay{
			{"10", 0, 80 * time.Second}, // throughout
			{"9", 0, 40 * time.Second},
			{"9", 30 * time.Second, 30500 * time.Millisecond}, // half of one column
		},
	}, {result: &replay.Result{Policy: "none"}}})
	if len(panels) != 1 {
		t.Fatalf("%d panels, want one: the second policy had no request", len(panels))
	}
	h := panels[0]
	if len(h.Rows) != 2 || h.Names[0] != "9" || h.Names[1] != "10" || h.Top != 1.5 || h.To != 80 {
		t.Fatalf("rows %v to %v, at most %v", h.Names, h.To, h.Top)
	}
	for i, want := range map[int]float64{0: 1, 29: 1, 30: 1.5, 31: 1, 39: 1, 40: 0, 79: 0} {
		if got := h.Rows[0][i]; got != want {
			t.Errorf("column %d has %v in flight, want %v", i, got, want)
		}
		if got := h.Rows[1][i]; got != 1 {
			t.Errorf("column %d of the other has %v in flight, want 1", i, got)
		}
	}
	if figures := comparison([]sight{{result: &replay.Result{Policy: "p"}}}); len(figures) != 2 {
		t.Errorf("%d figures of a policy without requests, want those without its load", len(figures))
	}
}

// What a gateway tells of its upstreams is drawn.
func TestLiveDraws(t *testing.T) {
	path := filepath.Join(t.TempDir(), "live.html")
	if _, err := runReplay(t, "live", "--trace", questions(t), "--url", gateway(t, http.StatusOK), "--upstream-header", "X-LLM", "--html", path); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 requests to http://", ">gpu1:8000</text>", ">50 %</text>", "llmreplay live: questions.jsonl"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
