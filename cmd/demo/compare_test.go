package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

// The comparison means something only while the caches can't all hold
// everything, and can together.
func TestThreeCachesHoldTheConversationsAndOneDoesNot(t *testing.T) {
	tr, err := trace.ReadFile(filepath.Join("..", "..", defaultTrace), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const bytesPerToken = 4
	size := 0
	seen := make(map[string]bool) // system prompts count once
	add := func(message json.RawMessage) {
		var m struct{ Role, Content string }
		if err := json.Unmarshal(message, &m); err != nil {
			t.Fatal(err)
		}
		if m.Role == "system" && seen[m.Content] {
			return
		}
		seen[m.Content] = true
		size += len(m.Content)
	}
	for _, c := range tr.Conversations {
		for _, turn := range c.Turns {
			for _, message := range turn.Messages {
				add(message)
			}
			add(turn.Assistant)
		}
	}
	if tokens := size / bytesPerToken; tokens <= defaultKVTokens || tokens > replicas*defaultKVTokens {
		t.Errorf("the conversations have about %d tokens, want more than the %d of one cache and at most those of %d", tokens, defaultKVTokens, replicas)
	}
}
