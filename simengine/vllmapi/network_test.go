package vllmapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// onLoopback serves a fast bench on a free port.
func onLoopback(t *testing.T, speed float64) (*bench, *httptest.Server) {
	t.Helper()
	b := newBench(t, benchEngine, speed)
	server := httptest.NewUnstartedServer(b)
	server.Config = b.HTTPServer(DefaultKeepAlive)
	server.Start()
	t.Cleanup(server.Close)
	return b, server
}

// soon waits for what another goroutine brings about.
func soon(t *testing.T, what string, reached func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !reached() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

func TestTheOfficialClientUnderstandsTheServer(t *testing.T) {
	b, server := onLoopback(t, 1000)
	client := openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	ctx := t.Context()
	params := openai.ChatCompletionNewParams{
		Model:     "m",
		Messages:  []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be kind."), openai.UserMessage("Hello?")},
		MaxTokens: openai.Int(40),
	}
	whole, err := client.Chat.Completions.New(ctx, params)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Choices) != 1 || whole.Choices[0].Message.Content == "" || whole.Usage.TotalTokens == 0 || !strings.HasPrefix(whole.ID, "chatcmpl-") {
		t.Errorf("the answer is %s", whole.RawJSON())
	}

	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(ctx, params)
	var sum openai.ChatCompletionAccumulator
	for stream.Next() {
		if !sum.AddChunk(stream.Current()) {
			t.Errorf("chunk %s doesn't fit", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if sum.Choices[0].Message.Content != whole.Choices[0].Message.Content || sum.Choices[0].FinishReason != whole.Choices[0].FinishReason {
		t.Errorf("streamed %q, want %q", sum.Choices[0].Message.Content, whole.Choices[0].Message.Content)
	}
	if sum.Usage.CompletionTokens != whole.Usage.CompletionTokens || sum.Usage.PromptTokensDetails.CachedTokens != whole.Usage.PromptTokens/16*16 {
		t.Errorf("usage of the stream is %s, of the whole %s", sum.Usage.RawJSON(), whole.Usage.RawJSON())
	}

	text, err := client.Completions.New(ctx, openai.CompletionNewParams{
		Model: "m", Prompt: openai.CompletionNewParamsPromptUnion{OfArrayOfTokens: []int64{1, 2, 3}},
	})
	if err != nil || len(text.Choices) != 1 || text.Usage.PromptTokens != 3 || text.Usage.CompletionTokens != 16 {
		t.Errorf("completions: %+v, %v", text, err)
	}
	models, err := client.Models.List(ctx)
	if err != nil || len(models.Data) != 1 || models.Data[0].ID != "m" {
		t.Errorf("models: %+v, %v", models, err)
	}

	for _, c := range []struct {
		name   string
		change func(*openai.ChatCompletionNewParams)
		status int
		kind   string
		param  string
	}{
		{"unknown model", func(p *openai.ChatCompletionNewParams) { p.Model = "x" }, 404, "NotFoundError", "model"},
		{"bad temperature", func(p *openai.ChatCompletionNewParams) { p.Temperature = openai.Float(-1) }, 400, "BadRequestError", "temperature"},
		{"too long", func(p *openai.ChatCompletionNewParams) { p.MaxTokens = openai.Int(1 << 40) }, 400, "BadRequestError", "max_tokens"},
	} {
		p := params
		c.change(&p)
		stream := client.Chat.Completions.NewStreaming(ctx, p)
		for stream.Next() {
			t.Errorf("%s: a chunk came: %s", c.name, stream.Current().RawJSON())
		}
		var e *openai.Error
		if err := stream.Err(); !errors.As(err, &e) || e.StatusCode != c.status || e.Type != c.kind || e.Param != c.param {
			t.Errorf("%s: %v", c.name, err)
		}
	}

	if _, err := b.Faults().Add(Fault{Kind: FaultStreamError, Tokens: 2}); err != nil {
		t.Fatal(err)
	}
	stream = client.Chat.Completions.NewStreaming(ctx, params)
	for stream.Next() {
	}
	if stream.Err() == nil {
		t.Error("an error in a stream went unnoticed")
	}
}

// A client that hangs up is noticed on the wire: while it waits for an answer
// in one piece, and while it reads a stream.
func TestHangingUpOnTheWire(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream %v", stream), func(t *testing.T) {
			b, server := onLoopback(t, 1)
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			body := fmt.Sprintf(`{"prompt":"x","max_tokens":16000,"ignore_eos":true,"stream":%v}`, stream)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+textPath, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			ended := make(chan error, 1)
			go func() {
				res, err := http.DefaultClient.Do(req)
				if err == nil {
					_, err = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				ended <- err
			}()
			soon(t, "running", func() bool { return b.driver.Stats().Running == 1 })
			hangUp()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the client got %v", err)
			}
			soon(t, "cancelled", func() bool {
				s := b.driver.Stats()
				return s.Running == 0 && s.KVUsage == 0 && len(b.journal()) == 1
			})
			if e := b.last(); !e.Aborted || e.OutputTokens > 15_000 {
				t.Errorf("entry %+v", e)
			}
		})
	}
}

// What faults do to a connection is what a client sees.
func TestFaultsOnTheWire(t *testing.T) {
	b, server := onLoopback(t, 1000)
	post := func(body string) (string, error) {
		res, err := http.Post(server.URL+textPath, "application/json", strings.NewReader(body))
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return string(text), err
	}
	for _, c := range []struct {
		fault Fault
		body  string
	}{
		{Fault{Kind: FaultClose}, stockBody},
		{Fault{Kind: FaultCloseBody}, `{"pad":"` + strings.Repeat(" ", 1<<20) + `",` + stockBody[1:]},
		{Fault{Kind: FaultCloseStream, Tokens: 3}, stockBody},
		{Fault{Kind: FaultCloseStream, Tokens: 3}, `{"stream":true,` + stockBody[1:]},
	} {
		remove := b.fault(c.fault)
		if text, err := post(c.body); err == nil {
			t.Errorf("%s: the client got %q", c.fault.Kind, text)
		}
		remove()
	}
	if text, err := post(stockBody); err != nil || !strings.Contains(text, `"usage"`) {
		t.Errorf("after all faults: %q, %v", text, err)
	}
}
