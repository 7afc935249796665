package e2e

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/simtest"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// simOptions are what tests change about a simulated engine.
type simOptions struct {
	maxModelLen int
	kvTokens    int
	speed       float64
	cost        simengine.Cost
}

// newSim makes a simulated vLLM server and runs its engine until the test
// ends. Its time goes a thousand times as fast as the clock: waiting for it is
// no part of these tests.
func newSim(t *testing.T, opts ...func(*simOptions)) http.Handler {
	t.Helper()
	preset, ok := simengine.PresetByName("llama3.1-8b-h100")
	if !ok {
		t.Fatal("there is no such preset")
	}
	o := simOptions{maxModelLen: preset.Config.MaxModelLen, kvTokens: 256 * 1024, speed: 1000, cost: preset.Config.Cost}
	for _, opt := range opts {
		opt(&o)
	}
	config := preset.Config
	config.Blocks = o.kvTokens / config.BlockSize
	config.MaxModelLen = o.maxModelLen
	config.Cost = o.cost
	return simtest.Start(t, simtest.Server{Model: model, Engine: config, Speed: o.speed})
}

// slowModel prefills so slowly that a test can interrupt it.
func slowModel(o *simOptions) {
	o.speed = 1
	o.cost.PrefillToken = 2e-3 // seconds
	o.kvTokens = 512 * 1024
}

// realTime is as fast as the real thing, so that answers can be left.
func realTime(o *simOptions) { o.speed = 1 }

// bigModel takes prompts of megabytes.
func bigModel(o *simOptions) {
	o.maxModelLen = 4 << 20
	o.kvTokens = 8 << 20
	o.cost.AttentionTerm = 0
	o.speed = 100_000
}

// reply is the text of an unstreamed chat answer.
func reply(t *testing.T, a answer) string {
	t.Helper()
	var body struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || len(body.Choices) == 0 {
		t.Fatalf("no answer in %.300s: %v", a.body, err)
	}
	return body.Choices[0].Message.Content
}

// chatless makes the body of a completions request.
func chatless(prompt string) []byte {
	text, err := json.Marshal(map[string]any{"model": model, "prompt": prompt, "max_tokens": 4})
	if err != nil {
		panic(err)
	}
	return text
}
