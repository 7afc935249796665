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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

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
