package fidelity

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/recording"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"
)

// usage is what an answer says of its tokens.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// Same token ids, same blocks, same order: the simulator must find as many
// tokens in its cache as vLLM did, request by request.
func TestCachedTokensAreThoseOfVLLM(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recorded(newest), "cache", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var s recording.Sequence
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		t.Run(s.Name, func(t *testing.T) {
			server := simulated(t, simengine.Config{
				BlockSize: blockSize, Blocks: s.Blocks, MaxModelLen: 896, MaxNumSeqs: 4, MaxNumBatchedTokens: 512,
			}, vllmmetrics.Main)
			var replies [][]int
			for i := range s.Steps {
				u, reply := complete(t, server, &s.Steps[i], replies)
				replies = append(replies, reply)
				want := &s.Steps[i]
				if u.Prompt != want.PromptTokens || u.Completion != want.ReplyTokens {
					t.Fatalf("step %d: %d prompt tokens and %d of reply, vLLM had %d and %d", i+1, u.Prompt, u.Completion, want.PromptTokens, want.ReplyTokens)
				}
				if u.Details.Cached != want.CachedTokens {
					t.Errorf("step %d: %d cached tokens, vLLM had %d", i+1, u.Details.Cached, want.CachedTokens)
				}
			}
		})
	}
}

// complete sends a step and returns its usage and the reply's token ids.
func complete(t *testing.T, server http.Handler, s *recording.Step, replies [][]int) (usage, []int) {
	t.Helper()
	request := map[string]any{
		"model": model, "prompt": s.Expand(replies), "max_tokens": s.MaxTokens, "temperature": 0, "ignore_eos": true, "return_token_ids": true,
	}
	if s.Salt != "" {
		request["cache_salt"] = s.Salt
	}
	if s.N > 0 {
		request["n"], request["temperature"] = s.N, 1
	}
	if s.PromptLogprobs {
		request["prompt_logprobs"] = 0
	}
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	w := ask(server, http.MethodPost, "/v1/completions", http.Header{"Content-Type": {"application/json"}}, body)
	var answer struct {
		Choices []struct {
			IDs []int `json:"token_ids"`
		} `json:"choices"`
		Usage usage `json:"usage"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK || len(answer.Choices) == 0 {
		t.Fatalf("status %d: %.300s", w.Code, w.Body)
	}
	return answer.Usage, answer.Choices[0].IDs
}
