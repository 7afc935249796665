// Package rivals restates published algorithms that choose an upstream for an
// LLM request, and llm_prefix, behind one small interface: Policy. A Policy is
// fed what a proxy sees, and nothing else: requests, its own history, first
// bytes and ends of answers with their usage, and metrics pages.
//
// registry.go lists them by name. Each file says where its algorithm comes
// from, what its defaults are, and where the restatement is generous to it.
// All of them see exact lengths of their own requests in flight, released at
// the end or at a cancel without fail, which some of the originals don't have.
//
// oracle.go has the policies that no proxy can have, to measure the others by.
package rivals

import "time"

// Request is a request as a proxy sees it.
type Request struct {
	ID    uint64 // of this attempt
	Bytes int    // of the prompt
	// Tokens is what the prompt is estimated to have: its bytes over four.
	Tokens int
	// Chain returns the hashes of the prompt's full blocks of so many bytes,
	// each chained on those before it. It must not be changed.
	Chain func(block int) []uint64
	// Blocks are the same blocks as numbers: from 0 on, one for each block of so
	// many bytes that any prompt of the replay has.
	Blocks func(block int) []int32
	// TokenBlocks is Blocks in tokens, for those that have the model's tokenizer;
	// PromptTokens is the exact length.
	TokenBlocks  func(block int) []int32
	PromptTokens int
	// UserKey identifies the first so many bytes of the first user message.
	UserKey func(bytes int) uint64
	// Output is how many tokens will be generated. Only oracles may look.
	Output int
}

// Target is an upstream that may be chosen.
type Target struct {
	Upstream int  // number, from 0
	Tried    bool // this request failed there before
}

// Outcome says how an attempt ended.
type Outcome int

const (
	Completed Outcome = iota
	Failed            // refused, reset or cut off
)

// Usage is what a completed answer tells.
type Usage struct {
	PromptTokens, OutputTokens, CachedTokens int
}

// Page is what a metrics page tells of an engine's last step.
type Page struct {
	Waiting, Running int
	KVUsage          float64 // 0 to 1
	CapacityTokens   float64
	BlockTokens      float64
	PrefixHits       float64 // counters
	PrefixQueries    float64
	PromptTokens     float64
	OutputTokens     float64
	Preemptions      float64
	StartTime        float64 // seconds
}

// Policy chooses upstreams for one proxy. Times are since the beginning of the
// replay and never go back. Calls come one after the other.
type Policy interface {
	// Pick returns a place in targets, of which there is at least one.
	Pick(now time.Duration, q *Request, targets []Target) int
	// FirstToken and End are told of requests picked before, each at most once;
	// usage is nil unless the answer is complete and tells of it.
	FirstToken(now time.Duration, id uint64)
	End(now time.Duration, id uint64, o Outcome, usage *Usage)
	// Scraped is told what a page said, page nil where it couldn't be had.
	Scraped(now time.Duration, upstream int, page *Page)
}

// Listener is a Policy that hears the streams that pass.
type Listener interface {
	// Token is told, at the end of an engine's step, of one stream of the proxy
	// that got a token in it and had one before.
	Token(now time.Duration, id uint64)
}

// Scraper is a Policy that has a scrape interval of its own, asked for at each
// scrape; 0 is that of the replay, which it is told.
type Scraper interface {
	ScrapeEvery(now, every time.Duration) time.Duration
}

// Env is what a policy is made from.
type Env struct {
	Upstreams int // numbers that targets may have, all below it
	Seed      uint64
	// BlockTokens is the engines' block size.
	BlockTokens int
	// Truth is the engines' true state, for oracles and for those that get the
	// engines' KV events.
	Truth Truth
}

// Truth is what no proxy sees.
type Truth interface {
	// Cached is how many tokens of the prompt an engine's cache has now.
	Cached(upstream int, q *Request) int
	// Forecast is the time at which the prompt would have its first token from
	// an engine if nothing came after it, and how many of its tokens the cache
	// would supply.
	Forecast(now time.Duration, upstream int, q *Request) (first time.Duration, cached int)
	// Work is the engine time that prefilling takes, in seconds: of so many
	// tokens behind so many cached ones.
	Work(upstream, tokens, cached int) float64
}
