package e2e

import (
	"errors"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// The official client, through the gateway: whole answers, streams and errors
// arrive as an OpenAI server would send them.
func TestOfficialClient(t *testing.T) {
	engines := newEngines(t, 3)
	g := site{upstreams: addrs(engines)}.start(t)
	client := openai.NewClient(option.WithBaseURL("http://gateway/v1"), option.WithAPIKey("none"),
		option.WithHTTPClient(g.client), option.WithMaxRetries(0))

	models, err := client.Models.List(t.Context())
	if err != nil || len(models.Data) != 1 || models.Data[0].ID != model {
		t.Errorf("models: %+v, %v", models, err)
	}
	messages := []openai.ChatCompletionMessageParamUnion{
		openai.SystemMessage(text("system", 2000)),
		openai.UserMessage("Hello."),
	}
	params := openai.ChatCompletionNewParams{
		Model: model, Messages: messages, MaxTokens: openai.Int(40),
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	whole := params
	whole.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
	first, err := client.Chat.Completions.New(t.Context(), whole)
	if err != nil {
		t.Fatal(err)
	}
	stream := client.Chat.Completions.NewStreaming(t.Context(), params)
	acc := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		acc.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if got, want := acc.Choices[0].Message.Content, first.Choices[0].Message.Content; got != want || got == "" {
		t.Errorf("streamed %q, whole %q", got, want)
	}
	if got := acc.Usage.PromptTokensDetails.CachedTokens; got < 400 {
		t.Errorf("%d tokens of a repeated prompt of %d were cached", got, acc.Usage.PromptTokens)
	}

	_, err = client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "another", Messages: messages})
	var refused *openai.Error
	if !errors.As(err, &refused) || refused.StatusCode != 404 {
		t.Errorf("an unknown model: %v, want 404 of the engine", err)
	}
	g.idle()
}
