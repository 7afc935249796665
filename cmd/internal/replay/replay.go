// Package replay sends recorded conversations to an OpenAI-compatible server
// with the official Go client and measures what a client sees: time to first
// token (TTFT), time per output token (TPOT), the share of the prompt that came
// from the prefix cache, and how requests failed.
//
// Run does the sending, Summarize turns its records into a Result, and Report
// is what programs print.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

// Defaults and bounds of Options.
const (
	DefaultConcurrency = 8
	DefaultTimeout     = 2 * time.Minute
	maxConcurrency     = 4096
	// bytesPerToken estimates the length of a recorded reply in tokens, the
	// usual figure for English text.
	bytesPerToken = 4
	// maxRecordedTokens bounds that estimate, unrecordedTokens stands in where
	// no reply was recorded.
	maxRecordedTokens = 1024
	unrecordedTokens  = 256
)

// Options say where and how to send. Only URL and Model are required.
type Options struct {
	// URL is the server's base, as http://127.0.0.1:8080; "/v1" is added
	// unless the path ends with it.
	URL string
	// APIKey is sent as a bearer token; empty sends none.
	APIKey string
	// Model is put into each request.
	Model string
	// NoStream asks for whole answers; TTFT and TPOT can't be known then.
	NoStream bool
	// ServerReplies continues a conversation with what the server answered,
	// not with the recorded reply. Replies that call tools are always the
	// recorded ones, since the tools' recorded answers refer to them.
	ServerReplies bool
	// Concurrency is how many conversations run at once, at most 4096; the
	// turns of one never overlap. Zero means DefaultConcurrency.
	Concurrency int
	// Speed divides the recorded times: 2 is twice as fast. Zero ignores them,
	// so that a turn follows as soon as the one before has its reply.
	Speed float64
	// MaxTokens bounds each reply. Zero asks for about as many tokens as the
	// recorded reply has, at 4 bytes each and at most 1024, or for 256 where
	// none is recorded.
	MaxTokens int
	// Timeout bounds one request from its start to its last byte. Zero means
	// DefaultTimeout.
	Timeout time.Duration
	// OnRecord, if not nil, is called after each request, never concurrently.
	OnRecord func(Record)
}

// Record is one request as its client saw it.
type Record struct {
	Conversation string
	Turn         int
	// TTFT is from sending to the first generated text or tool call; zero if
	// there was none or the reply wasn't streamed.
	TTFT time.Duration
	// E2E is from sending to the end of the reply or to the failure.
	E2E time.Duration
	// PromptTokens, CompletionTokens and CachedTokens are the server's usage.
	PromptTokens, CompletionTokens, CachedTokens int64
	// CachedKnown says that the server reported cached tokens at all.
	CachedKnown bool
	// Class is empty for success, else the kind of failure; see Classes.
	Class string
	// Detail says more about a failure, at most 300 bytes, in one line.
	Detail string
}

// TPOT is the mean time between output tokens; zero if it can't be known.
func (r Record) TPOT() time.Duration {
	if r.TTFT <= 0 || r.CompletionTokens < 2 {
		return 0
	}
	return (r.E2E - r.TTFT) / time.Duration(r.CompletionTokens-1)
}

// Validate checks o and fills in its defaults.
func (o *Options) Validate() error {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("the URL must be http://host[:port] or https://host[:port]")
	}
	if o.Concurrency == 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	switch {
	case o.Concurrency < 0 || o.Concurrency > maxConcurrency:
		return fmt.Errorf("concurrency must be 1 to %d", maxConcurrency)
	case !(o.Speed >= 0):
		return errors.New("speed must not be negative")
	case o.MaxTokens < 0:
		return errors.New("the bound of tokens must not be negative")
	case o.Timeout < 0:
		return errors.New("the timeout must not be negative")
	}
	return nil
}

// Run sends every turn of the conversations, in their order and as many
// conversations at once as o allows, and returns a record of each request.
//
// When ctx ends, requests under way are given up and leave no record; Run then
// returns what it has together with ctx's error. A failed request is a record,
// not an error. The goroutines that Run starts have ended when it returns.
func Run(ctx context.Context, conversations []trace.Conversation, o Options) ([]Record, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Model == "" {
		return nil, errors.New("no model is named")
	}
	transport := newTransport(o.Concurrency)
	defer transport.CloseIdleConnections()
	r := &run{o: o, chat: openai.NewChatCompletionService(clientOptions(o, transport)...), begin: time.Now()}

	ordered := slices.Clone(conversations)
	slices.SortStableFunc(ordered, func(a, b trace.Conversation) int { return int(min(max(a.Start-b.Start, -1), 1)) })
	queue := make(chan *trace.Conversation)
	var workers sync.WaitGroup
	for range min(o.Concurrency, len(ordered)) {
		workers.Go(func() {
			for c := range queue {
				r.converse(ctx, c)
			}
		})
	}
feed:
	for i := range ordered {
		select {
		case queue <- &ordered[i]:
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	workers.Wait()
	return r.records, ctx.Err()
}

// Models asks the server which models it serves.
func Models(ctx context.Context, o Options) ([]string, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	x := &exchange{}
	transport := newTransport(1)
	defer transport.CloseIdleConnections()
	models := openai.NewModelService(clientOptions(o, transport)...)
	page, err := models.List(withExchange(ctx, x))
	if err != nil {
		class, detail := classify(ctx, err, x, false)
		return nil, fmt.Errorf("asking for the models: %s: %s", class, detail)
	}
	var ids []string
	for _, m := range page.Data {
		ids = append(ids, m.ID)
	}
	return ids, nil
}

// clientOptions leave out what the SDK takes from the environment (keys and
// headers meant for another server) and its retries, which would hide the very
// failures that a replay counts.
func clientOptions(o Options, transport http.RoundTripper) []option.RequestOption {
	base := strings.TrimRight(o.URL, "/")
	if !strings.HasSuffix(base, "/v1") {
		base += "/v1"
	}
	options := []option.RequestOption{
		option.WithBaseURL(base + "/"),
		option.WithHTTPClient(&http.Client{Transport: transport}),
		option.WithMaxRetries(0),
	}
	if o.APIKey != "" {
		options = append(options, option.WithAPIKey(o.APIKey))
	}
	return options
}

// run is one replay under way.
type run struct {
	o     Options
	chat  openai.ChatCompletionService
	begin time.Time

	recordsMu sync.Mutex
	records   []Record
}

func (r *run) add(record Record) {
	r.recordsMu.Lock()
	defer r.recordsMu.Unlock()
	r.records = append(r.records, record)
	if r.o.OnRecord != nil {
		r.o.OnRecord(record)
	}
}

// converse sends the turns of one conversation. It ends early when a reply is
// needed to go on and there is none.
func (r *run) converse(ctx context.Context, c *trace.Conversation) {
	if !r.waitUntil(ctx, r.begin, c.Start) {
		return
	}
	var history []json.RawMessage
	sent := time.Now()
	for i := range c.Turns {
		turn := &c.Turns[i]
		if !r.waitUntil(ctx, sent, turn.Gap) {
			return
		}
		sent = time.Now()
		if turn.Whole {
			history = nil
		}
		history = append(history, turn.Messages...)
		record, reply := r.send(ctx, c, turn, history)
		if ctx.Err() != nil {
			return
		}
		record.Conversation, record.Turn = c.ID, i
		r.add(record)

		if turn.Assistant != nil && !(r.o.ServerReplies && reply != nil && !callsTools(turn.Assistant)) {
			reply = turn.Assistant
		}
		nextIsWhole := i+1 < len(c.Turns) && c.Turns[i+1].Whole
		if reply == nil && !nextIsWhole {
			return
		}
		if reply != nil {
			history = append(history, reply)
		}
	}
}

// waitUntil waits until the recorded time after from has passed at the speed
// asked for; false when ctx ended.
func (r *run) waitUntil(ctx context.Context, from time.Time, recorded time.Duration) bool {
	if r.o.Speed <= 0 || recorded <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(time.Until(from.Add(time.Duration(float64(recorded) / r.o.Speed))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func callsTools(message json.RawMessage) bool {
	var m struct {
		ToolCalls []json.RawMessage `json:"tool_calls"`
	}
	return json.Unmarshal(message, &m) == nil && len(m.ToolCalls) > 0
}
