package vllmapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// sendStream answers with server-sent events, one for each choice and step.
//
// The header goes out before the engine has done anything, and the chunk with
// the role comes with the first token: that is when vLLM sends them.
func (j *job) sendStream(ctx context.Context, o *outputs) {
	j.x.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	j.x.WriteHeader(http.StatusOK)
	j.x.flush()
	for first := true; ; first = false {
		if j.fault.due(j.generated) {
			j.strikeStream()
			return
		}
		if j.unfinished == 0 {
			break
		}
		q, before := j.receive(ctx, o)
		if q == nil {
			return
		}
		if first && j.g.chat {
			for i := range j.sequences {
				j.send(chatDelta{Index: i, Delta: deltaText{Role: "assistant"}}, 0, false)
			}
		}
		j.sendTokens(q, before)
		j.x.flush()
	}
	if j.g.includeUsage {
		c := j.chunk()
		c.Choices, c.Fingerprint = []any{}, fingerprintName
		u := streamUsage(j.usage())
		c.Usage = &u
		j.event(c)
	}
	j.done()
}

// sendTokens sends what a sequence generated since it had generated before
// tokens; not more than a fault lets through.
func (j *job) sendTokens(q *sequence, before int) {
	now, finished := q.generated, q.done
	if over := j.fault.beyond(j.generated); over > 0 {
		now, finished = max(before, now-over), false
	}
	text := q.shown(now)[len(q.shown(before)):]
	var finish *string
	var end *ending
	if finished {
		finish, end = &q.finish, &ending{q.reason}
	}
	if j.g.chat {
		j.send(chatDelta{Index: q.index, Delta: deltaText{Content: text}, Finish: finish, ending: end}, now, finished)
		return
	}
	if before == 0 {
		text = j.echoed(q) + text
	}
	j.send(textDelta{Index: q.index, Text: text, Finish: finish, ending: end}, now, finished)
}

func (j *job) chunk() chunk {
	c := chunk{ID: j.id, Object: "text_completion", Created: j.created, Model: j.g.model}
	if j.g.chat {
		c.Object = "chat.completion.chunk"
	}
	return c
}

// send sends a choice that has so many tokens by now.
func (j *job) send(choice any, tokens int, last bool) {
	c := j.chunk()
	c.Choices = []any{choice}
	if last && !j.g.includeUsage {
		c.Fingerprint = fingerprintName
	}
	if j.g.continuousUsage {
		// These tell of this choice, and nothing of the cache.
		c.Usage = &streamUsage{PromptTokens: j.promptTokens, CompletionTokens: tokens, TotalTokens: j.promptTokens + tokens}
	}
	j.event(c)
}

// event sends v without flushing it.
func (j *job) event(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		// All that is sent is made of strings and integers.
		panic(fmt.Errorf("encoding an event: %w", err))
	}
	_, _ = fmt.Fprintf(j.x, "data: %s\n\n", b) // a client that left is seen by its context
}

func (j *job) done() {
	_, _ = fmt.Fprint(j.x, "data: [DONE]\n\n")
	j.x.flush()
}

// strikeStream is what the client sees of a fault in the middle of a stream.
func (j *job) strikeStream() {
	if j.fault.Kind == FaultCloseStream {
		j.x.abort()
	}
	j.event(internalError(j.fault.message()).body())
	j.done()
}
