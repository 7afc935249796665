package vllmapi

import (
	"encoding/json"
	"errors"
	"math"
	"net/http/httptest"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// official is OpenAI's client of a fast server on loopback.
func official(t *testing.T, change func(*Config)) openai.Client {
	t.Helper()
	server := httptest.NewServer(instant(t, change))
	t.Cleanup(server.Close)
	return openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

func weatherTool() openai.ChatCompletionToolUnionParam {
	return openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: "weather",
		Parameters: openai.FunctionParameters{
			"type": "object",
			"properties": map[string]any{
				"city": map[string]any{"type": "string", "enum": []string{"Zürich", "Genève"}},
				"days": map[string]any{"type": "integer"},
				"fine": map[string]any{"type": "array", "items": map[string]any{"type": "boolean"}},
			},
		},
	})
}

func TestTheOfficialClientIsGivenToolCalls(t *testing.T) {
	client := official(t, func(c *Config) { c.Reasoning = true })
	for name, choice := range map[string]openai.ChatCompletionToolChoiceOptionUnionParam{
		"required": {OfAuto: openai.String("required")},
		"named":    openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "weather"}),
	} {
		params := openai.ChatCompletionNewParams{
			Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("The weather?")},
			Tools: []openai.ChatCompletionToolUnionParam{weatherTool()}, ToolChoice: choice, ParallelToolCalls: openai.Bool(true),
		}
		whole, err := client.Chat.Completions.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		calls := whole.Choices[0].Message.ToolCalls
		finish := map[string]string{"required": "tool_calls", "named": "stop"}[name]
		if len(calls) == 0 || whole.Choices[0].FinishReason != finish || whole.Choices[0].Message.Content != "" {
			t.Fatalf("%s: %s", name, whole.RawJSON())
		}
		for _, c := range calls {
			var arguments struct {
				City string
				Days int
				Fine []bool
			}
			if err := json.Unmarshal([]byte(c.Function.Arguments), &arguments); err != nil || c.Function.Name != "weather" || arguments.Days < 1 || len(arguments.City) < 6 || len(arguments.Fine) == 0 {
				t.Errorf("%s: call %s with %q: %v", name, c.Function.Name, c.Function.Arguments, err)
			}
		}
		stream := client.Chat.Completions.NewStreaming(t.Context(), params)
		var sum openai.ChatCompletionAccumulator
		for stream.Next() {
			if !sum.AddChunk(stream.Current()) {
				t.Errorf("%s: chunk %s doesn't fit", name, stream.Current().RawJSON())
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		got := sum.Choices[0].Message.ToolCalls
		if len(got) != len(calls) || sum.Choices[0].FinishReason != finish {
			t.Fatalf("%s, streamed: %d calls, %s; want %d, %s", name, len(got), sum.Choices[0].FinishReason, len(calls), finish)
		}
		for i := range calls {
			if got[i].ID != calls[i].ID || got[i].Function.Name != calls[i].Function.Name || got[i].Function.Arguments != calls[i].Function.Arguments {
				t.Errorf("%s, streamed: %+v, want %+v", name, got[i], calls[i])
			}
		}
	}
}

func TestTheOfficialClientUsesResponses(t *testing.T) {
	client := official(t, func(c *Config) { c.Reasoning = true })
	ctx := t.Context()
	params := responses.ResponseNewParams{
		Model: "m", Instructions: openai.String("Be kind."),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Tell me.")},
	}
	first, err := client.Responses.New(ctx, params)
	if err != nil {
		t.Fatal(err)
	}
	if first.OutputText() == "" || first.Status != "completed" || first.Usage.OutputTokensDetails.ReasoningTokens == 0 || first.Output[0].Type != "reasoning" {
		t.Errorf("the response is %s", first.RawJSON())
	}
	stream := client.Responses.NewStreaming(ctx, params)
	var text string
	var last responses.ResponseStreamEventUnion
	for n := int64(0); stream.Next(); n++ {
		last = stream.Current()
		if last.SequenceNumber != n {
			t.Errorf("event %d has the number %d", n, last.SequenceNumber)
		}
		if last.Type == "response.output_text.delta" {
			text += last.Delta
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if last.Type != "response.completed" || text != first.OutputText() || last.Response.OutputText() != text {
		t.Errorf("streamed %q, and last %s", text, last.RawJSON())
	}
	next, err := client.Responses.New(ctx, responses.ResponseNewParams{
		Model: "m", Instructions: openai.String("Be kind."), PreviousResponseID: openai.String(first.ID),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("And then?")},
	})
	if err != nil {
		t.Fatal(err)
	}
	// The thought isn't in the prompt of the next turn, all before it is.
	if next.Usage.InputTokens <= first.Usage.InputTokens || next.Usage.InputTokensDetails.CachedTokens != (first.Usage.InputTokens-1)/16*16 {
		t.Errorf("the next turn has %s after %s", next.Usage.RawJSON(), first.Usage.RawJSON())
	}
	again, err := client.Responses.Get(ctx, first.ID, responses.ResponseGetParams{})
	if err != nil || again.OutputText() != first.OutputText() {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	var e *openai.Error
	params.PreviousResponseID = openai.String("resp_none")
	if _, err := client.Responses.New(ctx, params); !errors.As(err, &e) || e.StatusCode != 404 || e.Param != "response_id" {
		t.Errorf("an unknown response: %v", err)
	}
	if _, err := client.Responses.Cancel(ctx, first.ID); !errors.As(err, &e) || e.StatusCode != 400 {
		t.Errorf("a cancel: %v", err)
	}
}

func TestTheOfficialClientGetsEmbeddings(t *testing.T) {
	client := official(t, func(*Config) {})
	get := func(format openai.EmbeddingNewParamsEncodingFormat, texts ...string) *openai.CreateEmbeddingResponse {
		t.Helper()
		r, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
			Model: "m", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts}, EncodingFormat: format, Dimensions: openai.Int(64),
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := get("float", "one", "other", "one")
	if len(r.Data) != 3 || len(r.Data[0].Embedding) != 64 || r.Usage.PromptTokens != 2+3+2 {
		t.Fatalf("the answer is %.300s", r.RawJSON())
	}
	length, between := 0.0, 0.0
	for i, x := range r.Data[0].Embedding {
		length += x * x
		between += x * r.Data[1].Embedding[i]
		if x != r.Data[2].Embedding[i] {
			t.Fatal("equal texts have other vectors")
		}
	}
	if math.Abs(length-1) > 1e-5 || math.Abs(between) > 0.7 {
		t.Errorf("length %v, product with another %v", length, between)
	}
}
