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

// freesLast are the versions that put blocks without a hash behind the cached
// ones, and so evict a cached block where the simulator and newer versions take
// one that holds nothing: after evictions each prompt may lack one block.
var freesLast = map[string]map[string]bool{
	"0.11.2": {"evictions": true, "evictions-by-replies": true},
	"0.19.1": {"evictions": true, "evictions-by-replies": true},
}

// Same token ids, same blocks, same order: the simulator must find as many
// tokens in its cache as vLLM did, request by request.
func TestCachedTokensAreThoseOfVLLM(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recorded("*"), "cache", "*.json"))
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
		version := filepath.Base(filepath.Dir(filepath.Dir(file)))
		t.Run(version+" "+s.Name, func(t *testing.T) {
			server := simulated(t, simengine.Config{
				BlockSize: blockSize, Blocks: s.Blocks, MaxModelLen: 896, MaxNumSeqs: 4, MaxNumBatchedTokens: 512,
			}, vllmmetrics.Main)
			var replies [][]int
			more := 0
			for i := range s.Steps {
				u, reply := complete(t, server, &s.Steps[i], replies)
				replies = append(replies, reply)
				want := &s.Steps[i]
				if u.Prompt != want.PromptTokens || u.Completion != want.ReplyTokens {
					t.Fatalf("step %d: %d prompt tokens and %d of reply, vLLM had %d and %d", i+1, u.Prompt, u.Completion, want.PromptTokens, want.ReplyTokens)
				}
				cached := max(0, want.CachedTokens) // silence is a zero
				if freesLast[version][s.Name] && u.Details.Cached == cached+blockSize {
					more++
				} else if u.Details.Cached != cached {
					t.Errorf("step %d: %d cached tokens, vLLM had %d", i+1, u.Details.Cached, cached)
				}
			}
			if freesLast[version][s.Name] && more == 0 {
				t.Error("is as recorded, though it is listed as another order of eviction")
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
