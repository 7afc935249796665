package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// cache keeps knees out of the user's folder.
func cache(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
}

func TestVirtualSaysTheSameForTheSameSeed(t *testing.T) {
	args := []string{"virtual", "--trace", "tenants:prompts=20", "--replicas", "3", "--requests", "300", "--rps", "20", "--block-size", "64",
		"--policies", "llm_prefix,llm_d:queue=1,kv=1,oracle_ttft,random", "--scenario", "restart", "--proxies", "2", "--split", "--json"}
	first, err := runReplay(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := runReplay(t, args...); err != nil || again != first {
		t.Errorf("a second run prints something else (%v):\n%s\nthan the first:\n%s", err, again, first)
	}
	var report struct {
		Trace    string
		Replicas int
		Results  []struct {
			Policy   string
			Requests int
			TTFT     struct{ Mean, P99 float64 } `json:"ttft_ms"`
			Vs       *float64                    `json:"ttft_mean_vs_oracle"`
		}
	}
	if err := json.Unmarshal([]byte(first), &report); err != nil {
		t.Fatalf("virtual --json printed %q: %v", first, err)
	}
	if report.Trace != "tenants:prompts=20" || report.Replicas != 3 || len(report.Results) != 4 {
		t.Fatalf("the report is %s", first)
	}
	for i, r := range report.Results {
		if r.Requests != 270 || r.TTFT.Mean <= 0 || r.TTFT.P99 < r.TTFT.Mean || r.Vs == nil {
			t.Errorf("result %d is %+v", i, r)
		}
	}
	if got := report.Results[1].Policy; got != "llm_d:queue=1,kv=1" {
		t.Errorf("the second policy is %q", got)
	}
	if got := *report.Results[2].Vs; got != 1 {
		t.Errorf("the oracle is %v of itself", got)
	}
	args[len(args)-1] = "--seed=2"
	if other, err := runReplay(t, append(args, "--json")...); err != nil || other == first {
		t.Errorf("another seed prints the same (%v)", err)
	}
}

func TestVirtualPrintsATable(t *testing.T) {
	out, err := runReplay(t, "virtual", "--trace", "hot", "--requests", "100", "--rps", "5", "--replicas", "2")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"hot on 2 replicas of llama3.1-8b-h100 at 5.00 requests/s", "llm_prefix", "least_conn", "oracle_ttft", "p99 vs oracle"} {
		if !strings.Contains(out, want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
}

// The knee is searched once and remembered.
func TestVirtualRemembersKnees(t *testing.T) {
	cache(t)
	k := openKnees()
	args := []string{"virtual", "--trace", "unique:user=500", "--requests", "60", "--replicas", "1", "--rate", "0.5", "--block-size", "64", "--policies", "random", "--json"}
	first, err := runReplay(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	if k = openKnees(); len(k.byID) != 1 {
		t.Fatalf("%d knees are remembered, want one", len(k.byID))
	}
	for id, rate := range k.byID {
		k.byID[id] = rate / 2
	}
	if err := k.write(); err != nil {
		t.Fatal(err)
	}
	var rates [2]struct {
		Rate float64 `json:"rate_requests_per_s"`
	}
	again, err := runReplay(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	for i, out := range []string{first, again} {
		if err := json.Unmarshal([]byte(out), &rates[i]); err != nil {
			t.Fatal(err)
		}
	}
	if r := rates[0].Rate / rates[1].Rate; r < 1.99 || r > 2.01 {
		t.Errorf("half the remembered knee gives %v instead of %v requests a second", rates[1].Rate, rates[0].Rate)
	}
}

func TestVirtualRefusesBadUsage(t *testing.T) {
	for _, args := range [][]string{
		{"virtual"},
		{"virtual", "--trace", "nowhere"},
		{"virtual", "--trace", "hot", "--preset", "none"},
		{"virtual", "--trace", "hot", "--scenario", "none"},
		{"virtual", "--trace", "hot", "--rps", "5", "--rate", "0.5"},
		{"virtual", "--trace", "hot", "--rps", "-5"},
		{"virtual", "--trace", "hot", "--policies", "none", "--requests", "10"},
		{"virtual", "--trace", "hot", "--replicas", "0", "--block-size", "-1"},
	} {
		if out, err := runReplay(t, args...); err == nil {
			t.Errorf("llmreplay %s = %q, want an error", strings.Join(args, " "), out)
		}
	}
}

func TestTracesListsEverything(t *testing.T) {
	out, err := runReplay(t, "traces")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"mooncake", "azure", "plain", "tenants", "prompts=300", "llm_d ", "queue=2", "oracle_rep", "restart", "metrics-zero"} {
		if !strings.Contains(out, want) {
			t.Errorf("llmreplay traces lacks %q:\n%s", want, out)
		}
	}
}
