package vllmapi

import (
	"context"
	"net/http"
)

// sendWhole waits for all choices and answers at once.
func (j *job) sendWhole(ctx context.Context, o *outputs) {
	for {
		if j.fault.due(j.generated) {
			j.fault.strikeWhole(j.x)
			return
		}
		if j.unfinished == 0 {
			break
		}
		if q, _ := j.receive(ctx, o); q == nil {
			return
		}
	}
	a := answer{
		ID: j.id, Object: "text_completion", Created: j.created, Model: j.g.model,
		Choices: make([]any, len(j.sequences)), Fingerprint: fingerprintName, Usage: j.usage(),
	}
	if j.g.chat {
		a.Object = "chat.completion"
	}
	for i, q := range j.sequences {
		text := q.shown(q.generated)
		if j.g.chat {
			message := chatMessage{Role: "assistant", Content: text, ToolCalls: []struct{}{}}
			a.Choices[i] = chatChoice{Index: i, Message: message, Finish: q.finish, StopReason: q.reason}
			continue
		}
		a.Choices[i] = textChoice{Index: i, Text: j.echoed(q) + text, Finish: q.finish, StopReason: q.reason}
	}
	writeJSON(j.x, http.StatusOK, a)
}

// echoed is the prompt's text, if the client wants it before the reply.
func (j *job) echoed(q *sequence) string {
	if !j.g.echo {
		return ""
	}
	return detokenize(j.g.prompts[q.index/j.g.n])
}
