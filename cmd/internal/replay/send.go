package replay

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

// send makes one request and returns its record and the server's reply as a
// chat message, nil if it failed or said nothing.
func (r *run) send(ctx context.Context, c *trace.Conversation, turn *trace.Turn, history []json.RawMessage) (Record, json.RawMessage) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	x := &exchange{header: r.o.UpstreamHeader}
	ctx = withExchange(ctx, x)

	params := openai.ChatCompletionNewParams{
		Model:     r.o.Model,
		MaxTokens: param.NewOpt(r.maxTokens(turn)),
	}
	for _, message := range history {
		params.Messages = append(params.Messages, param.Override[openai.ChatCompletionMessageParamUnion](message))
	}
	var options []option.RequestOption
	if c.Tools != nil {
		options = append(options, option.WithJSONSet("tools", c.Tools))
	}

	var record Record
	var reply string
	var err error
	begin := time.Now()
	record.Sent = begin.Sub(r.begin)
	if r.o.NoStream {
		reply, err = r.whole(ctx, params, options, &record)
	} else {
		reply, err = r.stream(ctx, params, options, begin, &record)
	}
	record.E2E, record.Upstream = time.Since(begin), x.upstream
	record.Class, record.Detail = classify(ctx, err, x, !r.o.NoStream)
	if record.Class != "" || reply == "" {
		return record, nil
	}
	message, err := json.Marshal(map[string]string{"role": "assistant", "content": reply})
	if err != nil {
		return record, nil
	}
	return record, message
}

func (r *run) maxTokens(turn *trace.Turn) int64 {
	if r.o.MaxTokens > 0 {
		return int64(r.o.MaxTokens)
	}
	if turn.Assistant == nil {
		return unrecordedTokens
	}
	var m struct {
		Content   string          `json:"content"`
		ToolCalls json.RawMessage `json:"tool_calls"`
	}
	// Content may be a list of parts; its length as JSON is near enough.
	length := len(turn.Assistant)
	if json.Unmarshal(turn.Assistant, &m) == nil {
		length = len(m.Content) + len(m.ToolCalls)
	}
	return int64(min(max(1, (length+bytesPerToken-1)/bytesPerToken), maxRecordedTokens))
}

// stream reads a streamed reply.
func (r *run) stream(ctx context.Context, params openai.ChatCompletionNewParams, options []option.RequestOption, begin time.Time, record *Record) (string, error) {
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)}
	stream := r.chat.NewStreaming(ctx, params, options...)
	defer stream.Close()
	var reply strings.Builder
	for stream.Next() {
		chunk := stream.Current()
		for i := range chunk.Choices {
			delta := &chunk.Choices[i].Delta
			if record.TTFT == 0 && generated(delta) {
				record.TTFT = time.Since(begin)
			}
			reply.WriteString(delta.Content)
		}
		if chunk.JSON.Usage.Valid() {
			record.take(chunk.Usage)
		}
	}
	return reply.String(), stream.Err()
}

// generated says whether a chunk carries anything that the model made: engines
// send a first one with nothing but the role, some before they compute at all.
func generated(delta *openai.ChatCompletionChunkChoiceDelta) bool {
	if delta.Content != "" || delta.Refusal != "" || len(delta.ToolCalls) > 0 {
		return true
	}
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if raw := delta.JSON.ExtraFields[name].Raw(); raw != "" && raw != "null" && raw != `""` {
			return true
		}
	}
	return false
}

// whole reads a reply that comes in one piece.
func (r *run) whole(ctx context.Context, params openai.ChatCompletionNewParams, options []option.RequestOption, record *Record) (string, error) {
	completion, err := r.chat.New(ctx, params, options...)
	if err != nil {
		return "", err
	}
	if len(completion.Choices) == 0 {
		return "", errNoChoice
	}
	if completion.JSON.Usage.Valid() {
		record.take(completion.Usage)
	}
	return completion.Choices[0].Message.Content, nil
}

func (r *Record) take(u openai.CompletionUsage) {
	r.PromptTokens, r.CompletionTokens = u.PromptTokens, u.CompletionTokens
	// vLLM answers null here unless it runs with --enable-prompt-tokens-details.
	if u.JSON.PromptTokensDetails.Valid() && u.PromptTokensDetails.JSON.CachedTokens.Valid() {
		r.CachedTokens, r.CachedKnown = u.PromptTokensDetails.CachedTokens, true
	}
}
