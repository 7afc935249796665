package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// findStop asks what the model answers, and takes from the middle of it a stop
// string and a stop token for the script.
func findStop(ctx context.Context, address string) (*strings.Replacer, error) {
	x := exchange{name: "the search for a stop", path: "/v1/completions",
		body: complete(`"ignore_eos": true, "logprobs": 0, "return_tokens_as_token_ids": true`)}
	x.fill()
	a, err := x.send(ctx, address)
	if err != nil {
		return nil, err
	}
	var reply struct {
		Choices []struct {
			Text     string `json:"text"`
			Logprobs struct {
				Tokens []string `json:"tokens"`
			} `json:"logprobs"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(a.body, &reply); err != nil || len(reply.Choices) == 0 {
		return nil, fmt.Errorf("searching for a stop: status %d: %.300s", a.status, a.body)
	}
	c := reply.Choices[0]
	text := []rune(c.Text)
	if len(text) < 8 || len(c.Logprobs.Tokens) < 8 {
		return nil, fmt.Errorf("searching for a stop: the reply is short: %q", c.Text)
	}
	piece, err := json.Marshal(string(text[len(text)/2 : len(text)/2+4]))
	if err != nil {
		return nil, err
	}
	id, err := strconv.Atoi(strings.TrimPrefix(c.Logprobs.Tokens[4], "token_id:"))
	if err != nil {
		return nil, fmt.Errorf("searching for a stop: %w", err)
	}
	return strings.NewReplacer(`"`+stopMark+`"`, string(piece), stopTokenMark, strconv.Itoa(id)), nil
}
