package simengine

import (
	"errors"
	"time"
)

// What Submit refuses.
var (
	ErrTooLong     = errors.New("prompt and one token exceed the model length")
	ErrBadRequest  = errors.New("request makes no sense")
	ErrDuplicateID = errors.New("a request of this id is in the engine")
	ErrFull        = errors.New("engine holds as many requests as it may")
)

// Reasons of Output.Reason, in vLLM's words.
const (
	ReasonStop   = "stop"
	ReasonLength = "length"
	ReasonAbort  = "abort"
)

// Request is one sequence to generate. The engine keeps the slices and reads
// them until the request is over; the caller must not change them meanwhile.
type Request struct {
	// ID names the request among those in the engine.
	ID uint64

	// PromptTokens is the length of the prompt, at least 1.
	PromptTokens int

	// Blocks are the hashes of the prompt's full blocks, each chained on the
	// ones before it, so that equal hashes mean equal prefixes. Fewer than
	// PromptTokens/BlockSize make the rest of the prompt uncacheable; more are
	// an error.
	Blocks []uint64

	// OutputTokens is how many tokens the request will generate, at least 1. It
	// is cut, with ReasonLength, where the context ends.
	OutputTokens int

	// OutputBlocks continue Blocks with the blocks that generated tokens
	// complete; the first may hold the prompt's tail. Nil if what is generated
	// won't be seen again. It counts only if Blocks covers all full blocks of
	// the prompt.
	OutputBlocks []uint64

	// Finish is the Output.Reason of a request that ran to its end: ReasonStop
	// or ReasonLength; default ReasonStop.
	Finish string

	// Priority orders requests if Config.PriorityScheduling; lower is sooner.
	Priority int

	// SkipPrefixCache computes the whole prompt: what it fills is made known to
	// the cache, and nothing is looked up or counted as such. vLLM does so where
	// log probabilities of the prompt are asked for.
	SkipPrefixCache bool

	// Adapter is the name of the LoRA adapter, for Stats and Config.MaxLoRAs;
	// empty is none. What keeps its blocks apart are their hashes.
	Adapter string

	// Source is the caller's; outputs and KV events hand it back. Nil is fine.
	Source any
}

// Output is what became of a request in a step that ended. Requests that got no
// token, such as those in the middle of their prefill, have none.
type Output struct {
	ID     uint64
	Source any // Request.Source

	// Tokens is the number of tokens generated since the previous Output of
	// this request.
	Tokens int

	// First is set with the first token.
	First bool

	// Finished is set on the last Output, with Reason. An abort is reported
	// when the engine took notice of it, with no token.
	Finished bool
	Reason   string

	// PromptTokens is the length of the prompt; CachedTokens is how much of it
	// was found in the prefix cache when the request was first admitted;
	// GeneratedTokens is the sum of all Tokens so far.
	PromptTokens, CachedTokens, GeneratedTokens int

	// Preemptions is how often the request was sent back to the queue so far.
	Preemptions int

	Times Times
}

// Times are the moments in the life of a request, on the engine's clock. Those
// that have not come yet are negative.
type Times struct {
	Arrived   time.Duration // Submit
	Queued    time.Duration // the scheduler could see it: Arrived + RequestOverhead
	Scheduled time.Duration // first admitted to a batch
	First     time.Duration // first token
	Previous  time.Duration // the token before this Output's; negative on the first
	At        time.Duration // this Output
}
