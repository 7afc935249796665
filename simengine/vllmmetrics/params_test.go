package vllmmetrics

import (
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// What clients asked for was counted by who answered them: not at all if the
// client had just left, once for all prompts of a list, and the longest reply once
// for each choice. The engine knows when a sequence ends, and counts as vLLM does.
func TestWhatWasAskedForIsCountedAtTheEngine(t *testing.T) {
	e := newExporter(t, Options{Model: "m", Profile: Main, Start: time.Now(), Stats: func(int) simengine.Stats { return simengine.Stats{} }})
	end := func(asked *Params, tokens int, reason string) {
		o := simengine.Output{Source: asked, Finished: true, Reason: reason, PromptTokens: 8, GeneratedTokens: tokens}
		e.Observer(0)([]simengine.Output{o})
	}
	two, left, torn := &Params{N: 2, MaxTokens: 30}, &Params{N: 1, MaxTokens: 5}, &Params{N: 2, MaxTokens: 7}
	end(two, 10, simengine.ReasonStop)
	end(left, 5, simengine.ReasonLength)
	end(torn, 7, simengine.ReasonLength)
	end(two, 4, simengine.ReasonStop)
	end(torn, 3, simengine.ReasonAbort)
	families := parse(t, render(t, e))
	for name, want := range map[string][2]float64{ // count and sum
		"vllm:request_params_n":                  {2, 3},
		"vllm:request_max_num_generation_tokens": {2, 15},
		"vllm:request_params_max_tokens":         {4, 30 + 5 + 7 + 30},
		"vllm:request_generation_tokens":         {4, 10 + 5 + 7 + 4},
	} {
		h := families[name].GetMetric()[0].GetHistogram()
		if got := [2]float64{float64(h.GetSampleCount()), h.GetSampleSum()}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
