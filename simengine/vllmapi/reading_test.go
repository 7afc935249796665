package vllmapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// reading is an answer of either kind, streamed or not.
type reading struct {
	ID, Object, Model string
	Choices           []struct {
		Index        int
		Text         string
		Message      struct{ Role, Content string }
		Delta        struct{ Role, Content *string }
		FinishReason *string `json:"finish_reason"`
		StopReason   any     `json:"stop_reason"`
	}
	Usage *struct {
		PromptTokens        int `json:"prompt_tokens"`
		CompletionTokens    int `json:"completion_tokens"`
		TotalTokens         int `json:"total_tokens"`
		PromptTokensDetails *struct {
			CachedTokens int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

// cached is what usage tells, -1 if it doesn't.
func (r *reading) cached() int {
	if r.Usage == nil || r.Usage.PromptTokensDetails == nil {
		return -1
	}
	return r.Usage.PromptTokensDetails.CachedTokens
}

// whole reads an answer in one piece.
func (r *recorded) whole(t *testing.T) reading {
	t.Helper()
	var v reading
	if err := json.Unmarshal(r.Body.Bytes(), &v); err != nil || r.Code != http.StatusOK {
		t.Fatalf("answer %d %s: %v", r.Code, r.Body, err)
	}
	return v
}

// events reads a stream, which must end with [DONE].
func (r *recorded) events(t *testing.T) []reading {
	t.Helper()
	if ct := r.Header().Get("Content-Type"); r.Code != http.StatusOK || ct != "text/event-stream; charset=utf-8" {
		t.Fatalf("answer %d %s %q", r.Code, r.Body, ct)
	}
	parts := bytes.Split(r.Body.Bytes(), []byte("\n\n"))
	if n := len(parts); n < 2 || len(parts[n-1]) != 0 || string(parts[n-2]) != "data: [DONE]" {
		t.Fatalf("the stream doesn't end with [DONE]: %q", r.Body)
	}
	var events []reading
	for _, part := range parts[:len(parts)-2] {
		data, ok := bytes.CutPrefix(part, []byte("data: "))
		var v reading
		if err := json.Unmarshal(data, &v); err != nil || !ok {
			t.Fatalf("event %q: %v", part, err)
		}
		events = append(events, v)
	}
	return events
}

// said is the text of one choice of a stream.
func said(events []reading, index int) string {
	var b strings.Builder
	for _, e := range events {
		for _, c := range e.Choices {
			if c.Index == index {
				b.WriteString(c.Text)
				if c.Delta.Content != nil {
					b.WriteString(*c.Delta.Content)
				}
			}
		}
	}
	return b.String()
}
