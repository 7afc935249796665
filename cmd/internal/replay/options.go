package replay

import (
	"errors"
	"fmt"
	"net/url"
	"time"
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
	// UpstreamHeader names a response header that tells the upstream: alone, or
	// as llm_prefix's option expose writes it. Empty looks for none.
	UpstreamHeader string
	// OnRecord, if not nil, is called after each request, never concurrently.
	OnRecord func(Record)
}

// Record is one request as its client saw it.
type Record struct {
	Conversation string
	Turn         int
	// Sent is since the replay began.
	Sent time.Duration
	// Upstream is what the response's header of Options.UpstreamHeader told.
	Upstream string
	// TTFT is from sending to the first generated text or tool call; zero if
	// there was none or the reply wasn't streamed.
	TTFT time.Duration
	// E2E is from sending to the end of the reply or to the failure.
	E2E time.Duration
	// PromptTokens, CompletionTokens and CachedTokens are the server's usage.
	PromptTokens, CompletionTokens, CachedTokens int64
	// CachedKnown says that the server reported cached tokens at all.
	CachedKnown bool
	// Class is empty for success, else the kind of failure: one of the Class
	// constants, or "status_" and the code of a response other than 200.
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
