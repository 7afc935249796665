package vllmmetrics

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
)

// leftOut are the families of a recorded page that the simulator doesn't have:
// what Python's library tells of the process and of its garbage collector, and
// how often a parser of tool calls ran.
var leftOut = regexp.MustCompile(`^(python_|process_[^s]|vllm:tool_call_parser_)`)

// masked are values that the recordings have as 0.
var masked = regexp.MustCompile(`^(process_|http_|vllm:iteration_tokens_total|\S*_seconds_sum|\S*_seconds_bucket\{.*le="[0-9.]+".*\})`)

// torn are versions whose recorded page under load is of no one moment: steps
// went on while it was written, on a busy machine. Its names hold, its numbers
// don't.
var torn = map[Profile]bool{V011: true}

// numbers are what is behind a sample's name and labels.
var numbers = regexp.MustCompile(` \S+$`)

// named leaves out the numbers of samples.
func named(lines []string) []string {
	list := slices.Clone(lines)
	for i, line := range list {
		if !strings.HasPrefix(line, "#") {
			list[i] = numbers.ReplaceAllString(line, "")
		}
	}
	return list
}

// lines makes a page comparable: without help texts, which are the simulator's
// own, without what is left out, and with masked values.
func lines(page string) []string {
	var list []string
	for line := range strings.Lines(strings.TrimRight(page, "\n") + "\n") {
		line = strings.TrimSuffix(line, "\n")
		name := strings.TrimPrefix(line, "# TYPE ")
		series, _, _ := strings.Cut(line, "} ")
		switch {
		case strings.HasPrefix(line, "# HELP"), leftOut.MatchString(name):
			continue
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "vllm:cache_config_info"):
			line = regexp.MustCompile(`"[^"]*"`).ReplaceAllString(line, `""`)
		case strings.Contains(series, "_created"):
			line = regexp.MustCompile(` \S+$`).ReplaceAllString(line, " created")
		case masked.MatchString(line):
			line = regexp.MustCompile(` \S+$`).ReplaceAllString(line, " masked")
		}
		list = append(list, line)
	}
	return list
}

// recorded are the folders of pages of versions of vLLM, and their profiles.
func recorded(t *testing.T) map[string]Profile {
	t.Helper()
	folders, err := filepath.Glob("../../testdata/vllm/*/metrics")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no recorded pages: %v", err)
	}
	list := map[string]Profile{}
	for _, folder := range folders {
		version := filepath.Base(filepath.Dir(folder))
		for prefix, p := range map[string]Profile{"0.8.": V08, "0.9.": V09, "0.10.": V011, "0.11.": V011, "0.19.": V019} {
			if strings.HasPrefix(version, prefix) {
				list[folder] = p
			}
		}
		if list[folder] == "" {
			list[folder] = Main
		}
	}
	return list
}

// FC-111: idle, under load and after it, the page is vLLM's own to the line:
// the same families in the same order, the same types, labels and buckets, and
// the same numbers wherever they don't depend on the time.
func TestFC111PagesAreThoseOfVLLM(t *testing.T) {
	for folder, profile := range recorded(t) {
		t.Run(string(profile), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				want := map[string]string{}
				for _, name := range []string{"idle", "load", "after"} {
					page, err := os.ReadFile(filepath.Join(folder, name+".prom"))
					if err != nil {
						t.Fatal(err)
					}
					want[name] = string(page)
				}
				// Which of the six requests came first wasn't recorded.
				load := parse(t, []byte(want["load"]))
				value := func(name string) int { return int(load[name].GetMetric()[0].GetCounter().GetValue()) }
				var problems []string
				for _, lengths := range orders(value("vllm:prompt_tokens_total")) {
					problems = nil
					for name, page := range recordedLoad(t, profile, lengths, value("vllm:generation_tokens_total")) {
						got, want := lines(page), lines(want[name])
						if name == "load" && torn[profile] {
							got, want = named(got), named(want)
						}
						problems = append(problems, difference(name, got, want)...)
					}
					if len(problems) == 0 {
						return
					}
				}
				t.Errorf("in no order of requests is this the page; in the last one:\n%s", strings.Join(problems, "\n"))
			})
		})
	}
}

// orders are those in which the prompts of 40 to 45 tokens may have come, if the
// first four have so many tokens together: who is first matters, and which
// three are next.
func orders(sum int) (list [][]int) {
	for first := 40; first <= 45; first++ {
		for a := 40; a <= 45; a++ {
			for b := a + 1; b <= 45; b++ {
				last := []int{a, b}
				if a == first || b == first || 255-a-b != sum {
					continue
				}
				order := []int{first}
				for n := 40; n <= 45; n++ {
					if n != first && n != a && n != b {
						order = append(order, n)
					}
				}
				list = append(list, append(order, last...))
			}
		}
	}
	return list
}

// difference are lines that only one of two pages has, or else the first that
// isn't in its place.
func difference(name string, got, want []string) (problems []string) {
	for _, side := range []struct {
		sign  string
		lines []string
		other []string
	}{{"+", got, want}, {"-", want, got}} {
		for _, line := range side.lines {
			if !slices.Contains(side.other, line) {
				problems = append(problems, name+" "+side.sign+" "+line)
			}
		}
	}
	for i := range min(len(got), len(want)) {
		if len(problems) == 0 && got[i] != want[i] {
			return []string{name + ": line " + got[i] + "\nwant " + want[i]}
		}
	}
	if len(problems) == 0 && len(got) != len(want) {
		return []string{name + ": a line is there twice"}
	}
	return problems
}

// recordedLoad does what was done to the servers that were recorded: six
// completions, the first of them a little earlier, of which four fit the batch.
// The page under load is of the step that brought the given number of tokens.
func recordedLoad(t *testing.T, profile Profile, lengths []int, tokens int) map[string]string {
	t.Helper()
	config := simengine.Config{BlockSize: 32, Blocks: 129, MaxModelLen: 512, MaxNumSeqs: 4, MaxNumBatchedTokens: 512, Cost: simengine.Cost{Base: 10 * time.Millisecond}}
	engine, err := simengine.New(config)
	if err != nil {
		t.Fatal(err)
	}
	var d *live.Driver
	e := newExporter(t, Options{
		Model: "tiny-llama", Profile: profile, Start: time.Now(), MaxModelLen: 512, Cache: CacheInfoOf(config),
		Stats: func(int) simengine.Stats { return d.Stats() },
	})
	d = live.New(engine, live.Options{Observe: e.Observer(0)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Run(ctx) }()
	defer func() { cancel(); <-done }()
	synctest.Wait()
	pages := map[string]string{"idle": string(render(t, e))}

	until := func(tokens int) {
		for d.Stats().GenerationTokens < uint64(tokens) {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
	}
	for _, length := range lengths {
		_, err := d.Generate(ctx, simengine.Request{
			PromptTokens: length, Blocks: []uint64{1}, OutputTokens: 400, Finish: simengine.ReasonLength,
			Source: &Params{N: 1, MaxTokens: 400},
		})
		if err != nil {
			t.Fatal(err)
		}
		// The first is alone for one to four steps, until the others are four
		// tokens a step from what is wanted.
		until((tokens - 1) % 4)
	}
	until(tokens)
	pages["load"] = string(render(t, e))
	time.Sleep(time.Minute)
	for range 6 {
		e.ObserveHTTP(HTTPAnswer{Handler: "/v1/completions", Method: "POST", Status: 200})
	}
	pages["after"] = string(render(t, e))
	return pages
}
