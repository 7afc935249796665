package main

import (
	"math"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/cluster"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/replay"
)

// resultOf makes a line of a report of a virtual run.
func resultOf(policy string, o *cluster.Outcome) replay.Result {
	r := replay.Result{
		Policy: policy, Requests: o.Requests, Failed: o.Failed, DurationS: thousandths(o.Duration.Seconds()),
		TTFT: replay.Describe(o.TTFT), TPOT: replay.Describe(o.TPOT), E2E: replay.Describe(o.E2E),
		PromptTokens: o.PromptTokens, CompletionTokens: o.OutputTokens,
	}
	if o.PromptTokens > 0 {
		cached := math.Round(1e4*float64(o.CachedTokens)/float64(o.PromptTokens)) / 1e4
		r.CachedTokenRatio = &cached
	}
	r.SetUpstreams(o.PerUpstream)
	return r
}

func thousandths(f float64) float64 { return math.Round(f*1000) / 1000 }
