package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/replay"
)

func result(policy string, ratio, ttft float64) replay.Result {
	r := replay.Result{Policy: policy, Requests: 9, TTFT: &replay.Distribution{Mean: ttft, P99: 3 * ttft}, CachedTokenRatio: &ratio}
	r.SetUpstreams([]int64{4, 3, 2})
	return r
}

func TestOnlyTheBestOfBothPasses(t *testing.T) {
	failed := result("round_robin", 0.5, 200)
	failed.Failed, failed.Errors = 1, []replay.ErrorCount{{Class: "status_502", Count: 1, Example: "gone"}}
	silent := result("round_robin", 0.5, 200)
	silent.CachedTokenRatio = nil
	for _, c := range []struct {
		name string
		ours replay.Result
		them replay.Result
		want []string // in the error; none means that it passes
	}{
		{"better in both", result("llm_prefix", 0.9, 100), result("round_robin", 0.5, 200), nil},
		{"fewer cached tokens", result("llm_prefix", 0.4, 100), result("round_robin", 0.5, 200), []string{"round_robin has a cached-token ratio of 50.0 %, llm_prefix only 40.0 %"}},
		{"slower", result("llm_prefix", 0.9, 250), result("round_robin", 0.5, 200), []string{"round_robin has a mean TTFT of 200 ms, llm_prefix one of 250 ms"}},
		{"equal", result("llm_prefix", 0.5, 200), result("round_robin", 0.5, 200), []string{"cached-token ratio", "mean TTFT"}},
		{"failed requests", result("llm_prefix", 0.9, 100), failed, []string{"round_robin: 1 of 9 requests failed, as status_502: gone"}},
		{"nothing reported", result("llm_prefix", 0.9, 100), silent, []string{"round_robin: no TTFT or no cached tokens"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := verdict([]replay.Result{c.ours, c.them})
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("verdict = %v, want an error with %q", err, c.want)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("verdict = %q, want %q in it", err, want)
				}
			}
		})
	}
	if verdict([]replay.Result{result("llm_prefix", 1, 1)}) == nil {
		t.Error("verdict without rivals = nil, want an error")
	}
}

// What a busy machine may have done is measured again, what it can't have done
// isn't.
func TestWhoWasSlowerIsMeasuredAgain(t *testing.T) {
	them := result("round_robin", 0.5, 200)
	well, slow, cold := result("llm_prefix", 0.9, 100), result("llm_prefix", 0.9, 250), result("llm_prefix", 0.4, 100)
	both := result("llm_prefix", 0.4, 250)
	for _, c := range []struct {
		name  string
		ours  []replay.Result // in each comparison; the last one stays
		times int
		ok    bool
	}{
		{"well", []replay.Result{well}, 1, true},
		{"slower once", []replay.Result{slow, well}, 2, true},
		{"always slower", []replay.Result{slow}, tries, false},
		{"fewer cached tokens", []replay.Result{cold, well}, 1, false},
		{"slower and fewer cached tokens", []replay.Result{both, well}, 1, false},
		{"slower, then fewer cached tokens", []replay.Result{slow, cold, well}, 2, false},
	} {
		times := 0
		_, missed, err := decide(io.Discard, func() ([]replay.Result, error) {
			times++
			return []replay.Result{c.ours[min(times, len(c.ours))-1], them}, nil
		})
		if err != nil || (missed == nil) != c.ok || times != c.times {
			t.Errorf("%s: %v, %v after %d comparisons, want %d", c.name, missed, err, times, c.times)
		}
	}
	away := errors.New("away")
	if _, _, err := decide(io.Discard, func() ([]replay.Result, error) { return nil, away }); !errors.Is(err, away) {
		t.Errorf("a replay that fails = %v, want its error", err)
	}
}

func TestTheTableHasALineForEachPolicy(t *testing.T) {
	var b bytes.Buffer
	err := writeTable(&b, &replay.Report{Trace: "support.jsonl", Replicas: 3, Results: []replay.Result{
		result("llm_prefix", 0.9, 100), result("round_robin", 0.512, 200), {Policy: "ip_hash", Requests: 9, Failed: 9},
	}}, (&compare{preset: "large", kvTokens: 12_288}).engine())
	if err != nil {
		t.Fatal(err)
	}
	const want = `
support.jsonl on 3 simulated vLLM servers (large, KV cache of 12,288 tokens), cold caches for each policy

        policy   TTFT mean   TTFT p99   cached tokens   requests per upstream   failed
    llm_prefix      100 ms     300 ms          90.0 %               4 / 3 / 2        0
   round_robin      200 ms     600 ms          51.2 %               4 / 3 / 2        0
       ip_hash           -          -         unknown                                9

All clients have one address, as behind a NAT: ip_hash sends them to one server.
`
	if got := b.String(); got != want {
		t.Errorf("writeTable =\n%s\nwant\n%s", got, want)
	}
}
