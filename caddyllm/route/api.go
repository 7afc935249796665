package route

import "time"

// Num is a number that may be unknown. A name missing from a metrics page is
// unknown, never zero: an engine whose queue we can't see must not look idle.
type Num struct {
	Value float64
	Known bool
}

// Known wraps a value that was really seen.
func Known(v float64) Num { return Num{Value: v, Known: true} }

// Load is what one scrape of one upstream's metrics page told. Counters are as
// the engine counts them, since its start.
type Load struct {
	Waiting        Num // requests admitted to no batch yet, over all engines of the page
	Running        Num // requests in the batch, over all engines of the page
	KVUsage        Num // share of KV blocks held by requests, 0 to 1, the fullest engine of the page
	CapacityTokens Num // KV cache size, tokens, over all engines of the page
	BlockTokens    Num // tokens per KV block
	PrefixHits     Num // counter, prompt tokens found in the prefix cache
	PrefixQueries  Num // counter, prompt tokens looked up in the prefix cache
	PromptTokens   Num // counter
	OutputTokens   Num // counter, generated tokens
	Preemptions    Num // counter
	PrefixCache    Num // 1 if the engine keeps prefixes, 0 if that is switched off
	Awake          Num // 0 if the engine sleeps: it has given up its cache, and requests wait until it is woken
	StartTime      Num // Unix seconds at which the engine's process started
}

// Empty reports whether the page doesn't tell the whole queue: it is not that
// of an engine we know, or a number on it can't be true. Half a queue would
// look like a short one.
func (l *Load) Empty() bool { return !l.Waiting.Known || !l.Running.Known }

// Target is one upstream that the proxy would use for a request.
type Target struct {
	ID    string // the upstream's dial address; the key of all that is known of it
	Tried bool   // this request was sent there before and failed
	Home  bool   // the request's session was sent there before
}

// Request is what the decision needs of a request's prompt.
type Request struct {
	// Chain holds one hash for each full block of the prompt, first block
	// first; each hash stands for its block and all before it.
	Chain []uint64
	// Bytes is the length of the whole prompt in bytes, the part behind the
	// last full block included.
	Bytes int
	// ExtraTokens is what images and audio add beyond Bytes, in tokens.
	ExtraTokens int
	// Model keys the learned tokens per byte; 0 is a model like any other.
	Model uint64
	// MaxTokens is the asked bound of generated tokens, 0 if unknown.
	MaxTokens int
	// Sequences is the number of answers asked for: OpenAI's n, for each prompt
	// of a list; 0 means 1.
	Sequences int
	// Partial says that the prompt begins with what only the engine knows, such
	// as an earlier response.
	Partial bool
	// Unread says that the engine doesn't look for the prompt in its prefix cache,
	// as vLLM doesn't where all tokens of a prompt are to be scored. What is held
	// of it is no reason to go anywhere. What it computes is cached as ever.
	Unread bool
	// Background says that the answer only accepts the request, which is worked on
	// after it.
	Background bool
	// Stream says that first bytes of the answer mark the first token. The
	// first byte of an answer that isn't streamed comes with its last token.
	Stream bool
}

// sought is the part of the chain that the engine looks for in its cache.
func (q *Request) sought() []uint64 {
	if q.Unread {
		return nil
	}
	return q.Chain
}

// Reason says in one word why an upstream was chosen.
type Reason string

const (
	ReasonPrefix Reason = "prefix" // its cache holds the prompt's start
	ReasonLoad   Reason = "load"   // another holds more of the prompt, but is busy
	ReasonCold   Reason = "cold"   // no cache holds any of it
	ReasonRetry  Reason = "retry"  // an earlier choice of this request failed
	ReasonProbe  Reason = "probe"  // to see whether a doubtful upstream still answers
	// ReasonSession: the session's earlier requests went there, and no queue is
	// worth leaving it.
	ReasonSession Reason = "session"
)

// Ticket names one reservation. The zero Ticket names none, and every call
// with it is a no-op; so is every call with a ticket that was released.
type Ticket uint64

// Choice is one decision.
type Choice struct {
	Index         int // into the targets given to Pick
	Ticket        Ticket
	Reason        Reason
	PromptTokens  int           // estimate
	MatchedTokens int           // estimate of prompt tokens held by the chosen upstream
	MatchedBlocks int           // leading blocks of Chain held there
	FirstToken    time.Duration // predicted time to the first token
	Pulse         *Pulse        // to be told of each chunk of a streamed answer
}

// Usage is what an answer told of its tokens.
type Usage struct {
	PromptTokens     int
	CompletionTokens int
	CachedTokens     int
	CachedKnown      bool // the answer tells cached tokens
	Form             Form
}

// Form is the form of an answer's usage. An engine may tell cached tokens in one
// and not in another.
type Form uint8

const (
	FormCompletion Form = iota // OpenAI's completions and chat completions
	FormResponse               // OpenAI's responses
	FormMessage                // Anthropic's messages
	forms
)

// End says how a reservation ended.
type End int

const (
	Completed End = iota // the answer came through whole
	Cancelled            // the client left
	Failed               // no answer, or one cut off: refused, reset, timed out, 5xx
	// Rejected: answered with a 3xx, a 4xx but 429, 501 or 505. One teaches nothing about
	// the upstream, since the request may be at fault. After 16 in a row, with none
	// served between, the upstream counts for 5 s as no less busy than others.
	Rejected
)
