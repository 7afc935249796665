package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/recording"
)

func ids(first, count int) recording.Run { return recording.Run{First: first, Count: count} }

func step(maxTokens int, prompt ...recording.Run) recording.Step {
	return recording.Step{Prompt: prompt, MaxTokens: maxTokens}
}

// sequences ask how much of each prompt the cache supplies. Ids stay clear of
// the special tokens and below the model's 2048.
func sequences(blocks int) []recording.Sequence {
	usable := blocks - 1
	salted := func(salt string) recording.Step {
		s := step(1, ids(100, 100))
		s.Salt = salt
		return s
	}
	double, logprobs := step(1, ids(100, 100)), step(1, ids(100, 100))
	double.N, logprobs.PromptLogprobs = 2, true
	part := usable / 4 * blockSize // tokens of a quarter of the cache

	all := []recording.Sequence{
		// A hit never covers the last token: a repeat of whole blocks computes
		// the last block again.
		{Name: "repeats", Steps: []recording.Step{
			step(1, ids(100, 64)), step(1, ids(100, 64)), step(1, ids(100, 65)), step(1, ids(100, 65)), step(1, ids(100, 63)),
			step(1, ids(100, 32)), step(1, ids(100, 33)), step(1, ids(100, 31)), step(1, ids(500, 31)), step(1, ids(500, 31)),
		}},
		{Name: "shared-prefixes", Steps: []recording.Step{
			step(1, ids(100, 80), ids(300, 40)), step(1, ids(100, 80), ids(400, 40)), step(1, ids(100, 64), ids(500, 40)),
			step(1, ids(100, 63), ids(600, 40)), step(1, ids(100, 96), ids(700, 40)), step(1, ids(101, 80), ids(300, 40)),
		}},
		// Blocks that a reply completes are found by the next turn.
		{Name: "growing-turns", Steps: []recording.Step{
			step(40, ids(100, 60)),
			step(40, ids(100, 60), recording.Run{Reply: 1}, ids(200, 20)),
			step(40, ids(100, 60), recording.Run{Reply: 1}, ids(200, 20), recording.Run{Reply: 2}, ids(300, 20)),
			step(1, ids(100, 60), recording.Run{Reply: 1}, ids(400, 60)),
			// The last token of a reply is never computed: a reply that ends
			// where a block does leaves that block open.
			step(34, ids(900, 30)), step(1, ids(900, 30), recording.Run{Reply: 5}, ids(1000, 3)),
			step(35, ids(950, 30)), step(1, ids(950, 30), recording.Run{Reply: 7}, ids(1000, 3)),
		}},
		{Name: "salts", Steps: []recording.Step{
			salted(""), salted("a"), salted("b"), salted("a"), salted("b"), salted(""),
		}},
		{Name: "choices", Steps: []recording.Step{double, double, logprobs, step(1, ids(100, 100))}},
		// Four prompts of a quarter fit, one more pushes out the tail of the
		// one that was used longest ago.
		{Name: "evictions", Steps: []recording.Step{
			step(1, ids(100, part)), step(1, ids(300, part)), step(1, ids(500, part)), step(1, ids(700, part)),
			step(1, ids(100, part)), // all are there
			step(1, ids(900, 80)),   // evicts from 300's tail
			step(1, ids(300, part)), step(1, ids(500, part)), step(1, ids(700, part)), step(1, ids(100, part)), step(1, ids(900, 80)),
		}},
		// A head used by many outlives their tails.
		{Name: "evictions-shared-head", Steps: []recording.Step{
			step(1, ids(100, 96), ids(300, part-96)), step(1, ids(100, 96), ids(500, part-96)), step(1, ids(700, 2*part)),
			step(1, ids(100, 96), ids(900, part-96)), step(1, ids(100, 96), ids(300, part-96)), step(1, ids(100, 96), ids(500, part-96)),
			step(1, ids(700, 2*part)),
		}},
		// Generated tokens take room too.
		{Name: "evictions-by-replies", Steps: []recording.Step{
			step(1, ids(100, 2*part)), step(part, ids(300, part)), step(part, ids(500, part)), step(1, ids(100, 2*part)),
			step(1, ids(300, part), recording.Run{Reply: 2}),
		}},
		{Name: "whole-cache", Steps: []recording.Step{
			step(1, ids(100, 3*part)), step(1, ids(800, 3*part)), step(1, ids(100, 3*part)), step(1, ids(100, 3*part)),
		}},
	}
	for i := range all {
		all[i].Blocks = blocks
	}
	return all
}

// play sends a sequence and fills in what came back.
func play(ctx context.Context, address string, s *recording.Sequence) error {
	reset := exchange{name: "reset of the cache", method: http.MethodPost, path: "/reset_prefix_cache"}
	a, err := reset.send(ctx, address)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return fmt.Errorf("resetting the cache: status %d", a.status)
	}
	var replies [][]int
	for i := range s.Steps {
		reply, err := playStep(ctx, address, &s.Steps[i], replies)
		if err != nil {
			return fmt.Errorf("playing step %d of %s: %w", i+1, s.Name, err)
		}
		replies = append(replies, reply)
	}
	return nil
}

// playStep sends one step and returns the token ids of its reply.
func playStep(ctx context.Context, address string, s *recording.Step, replies [][]int) ([]int, error) {
	request := map[string]any{
		"model": modelName, "prompt": s.Expand(replies), "max_tokens": s.MaxTokens, "temperature": 0, "ignore_eos": true,
		// All versions tell the ids of a reply in this way.
		"logprobs": 0, "return_tokens_as_token_ids": true,
	}
	if s.Salt != "" {
		request["cache_salt"] = s.Salt
	}
	if s.N > 0 {
		request["n"], request["temperature"], request["seed"] = s.N, 1, 1
	}
	if s.PromptLogprobs {
		request["prompt_logprobs"] = 0
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	x := exchange{name: "a step", path: "/v1/completions", body: string(body)}
	x.fill()
	a, err := x.send(ctx, address)
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("status %d: %.300s", a.status, a.body)
	}
	var reply struct {
		Choices []struct {
			Logprobs struct {
				Tokens []string `json:"tokens"`
			} `json:"logprobs"`
		} `json:"choices"`
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Details    *struct {
				Cached *int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(a.body, &reply); err != nil {
		return nil, err
	}
	if len(reply.Choices) == 0 {
		return nil, errors.New("no choice")
	}
	s.PromptTokens, s.ReplyTokens, s.CachedTokens = reply.Usage.Prompt, reply.Usage.Completion, -1
	if d := reply.Usage.Details; d != nil && d.Cached != nil {
		s.CachedTokens = *d.Cached
	}
	var tokens []int
	for _, t := range reply.Choices[0].Logprobs.Tokens {
		id, err := strconv.Atoi(strings.TrimPrefix(t, "token_id:"))
		if err != nil {
			return nil, fmt.Errorf("reading the reply's ids: %w", err)
		}
		tokens = append(tokens, id)
	}
	return tokens, nil
}
