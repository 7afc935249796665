package vllmapi

import (
	"net/http"
	"strconv"
)

// Bounds of a request. vLLM takes up to 16384 choices; each costs memory here
// as there, and clients of the API know 128 as the limit.
const (
	maxChoices        = 128
	vllmChoices       = 16384 // vLLM's VLLM_MAX_N_SEQUENCES
	maxPrompts        = 1024  // in one completions request; vLLM's VLLM_MAX_COMPLETION_PROMPTS
	maxSequences      = 4096  // choices times prompts
	maxStops          = 4     // stop strings; vLLM's VLLM_MAX_STOP_STRINGS
	maxStopBytes      = 1024  // in one stop string
	maxSalt           = 128   // bytes of a cache_salt
	maxLogprobs       = 20    // vLLM's --max-logprobs
	completionsTokens = 16    // default of max_tokens on /v1/completions
	maxPriority       = 1<<31 - 1
)

// none is a number of log probabilities that nobody asked for.
const none = -2

// generation is a request to generate, of any API.
type generation struct {
	api     *api
	model   string
	salt    string
	id      string // the client's
	prompts [][]token

	tokenized bool // prompts came as text

	n         int
	ignoresN  bool // the API has one choice
	maxTokens int  // 0: as many as the context holds
	maxName   string
	seed      uint64
	seeded    bool
	limits    limits // all but maxTokens
	priority  int
	rank      *int // of the engine that the client wants

	stream          bool
	includeUsage    bool
	continuousUsage bool

	echo      bool
	echoed    string // what a chat begins its answer with
	onlyEcho  bool   // a completion of no tokens
	role      string // of the answer
	returnIDs bool   // tokens go out by number, too
	asIDs     bool   // log probabilities name tokens by number

	logprobs       int // of the most likely tokens, beside the generated; -1 is all; or none
	promptLogprobs int // likewise for the prompt

	format   *format // that replies are to have
	tools    []tool
	choice   toolChoice
	parallel bool // calls
	think    bool // wanted, if the server can
	budget   int  // of tokens to think; 0 is no bound
	hidden   bool // thoughts stay inside

	response *response // of the Responses API

	// late is what vLLM finds wrong only after it has looked at the model's
	// name and the prompt's length.
	late *apiError
}

// prompt is the i-th prompt, as long as it may still be told.
func (g *generation) prompt(i int) []token {
	if i >= len(g.prompts) {
		return nil
	}
	return g.prompts[i]
}

// refuseLate keeps the first error; nil is none.
func (g *generation) refuseLate(err *apiError) {
	if g.late == nil {
		g.late = err
	}
}

// newGeneration reads what the APIs have in common.
func newGeneration(f *form, h http.Header) *generation {
	g := &generation{n: 1, role: "assistant", logprobs: none, promptLogprobs: none, parallel: true, think: true, tokenized: true, maxName: "max_tokens"}
	g.model, _ = f.text("model")
	g.readSalt(f)
	g.stream = f.boolean("stream", false)
	g.id, _ = f.text("request_id")
	if id := h.Get("X-Request-Id"); id != "" {
		g.id = id
	}
	g.readPriority(f, h)
	if v := h.Get("X-Data-Parallel-Rank"); v != "" {
		if n, err := strconv.Atoi(v); err == nil { // others count for none
			g.rank = &n
		}
	}
	return g
}

// readSalt reads cache_salt within vLLM's bounds.
func (g *generation) readSalt(f *form) {
	raw, given := f.get("cache_salt")
	if !given {
		return
	}
	if raw[0] == '"' {
		g.salt = unquote(raw)
	}
	if g.salt == "" {
		f.adopt(refuseParam("cache_salt", "Parameter 'cache_salt' must be a non-empty string if provided."))
		return
	}
	for _, c := range []byte(g.salt) {
		if c == '@' || c == '/' || c == '\\' || c == 0 || len(g.salt) > maxSalt {
			f.adopt(refuseParam("cache_salt", "Parameter 'cache_salt' must be at most %d characters and must not contain '@', '/', '\\\\', or NUL.", maxSalt))
			return
		}
	}
}

// readPriority takes the header before the body's member.
func (g *generation) readPriority(f *form, h http.Header) {
	g.priority = f.count("priority", 0)
	if v := h.Get("X-Vllm-Priority"); v != "" {
		if n, ok := wholeNumber([]byte(v)); ok {
			g.priority = int(min(max(n, -1<<40), 1<<40))
		}
	}
	g.priority = min(max(g.priority, -maxPriority), maxPriority) // beyond that, order is of no use
}

// readStreamOptions reads what streams of chats and completions may have more.
func (g *generation) readStreamOptions(f *form) {
	raw, given := f.get("stream_options")
	if !given {
		return
	}
	if !g.stream && string(raw) != "{}" {
		f.adopt(refuseParam("stream_options", "Stream options can only be defined when `stream=True`."))
		return
	}
	options, ok := f.sub("stream_options")
	if !ok {
		return
	}
	g.includeUsage = options.boolean("include_usage", false)
	g.continuousUsage = options.boolean("continuous_usage_stats", false) && g.includeUsage
	f.adopt(options.err)
}

// readTruncation keeps one end of prompts, where asked to; -1 stands for the
// whole context but one token.
func (g *generation) readTruncation(f *form, maxModelLen int) {
	keep, given := f.integer("truncate_prompt_tokens")
	if !given {
		return
	}
	if keep < -1 {
		f.fail("greater_than_equal", "truncate_prompt_tokens", "Input should be greater than or equal to -1")
		return
	}
	if keep > int64(maxModelLen) {
		g.refuseLate(refuseValue("truncate_prompt_tokens", keep,
			"truncate_prompt_tokens=%d cannot be greater than max_model_len = %d. Please request a smaller truncation size.", keep, maxModelLen))
		return
	}
	if keep == -1 {
		keep = int64(maxModelLen) - 1
	}
	side, _ := f.text("truncation_side")
	if side != "" && side != "left" && side != "right" {
		f.fail("literal_error", "truncation_side", "Input should be 'left' or 'right'")
	}
	for i, p := range g.prompts {
		switch over := len(p) - int(keep); {
		case over <= 0:
		case side == "right":
			g.prompts[i] = p[:keep]
		default:
			g.prompts[i] = p[over:]
		}
	}
}

// fit checks lengths against the model's and returns the bound of a reply to
// the i-th prompt: what was asked for, or what is left of the context.
func (g *generation) fit(i, maxModelLen int) (int, *apiError) {
	length := len(g.prompts[i])
	switch room := maxModelLen - length; {
	case length == 0:
		return 0, refuse("", "The decoder prompt cannot be empty")
	case g.maxTokens > maxModelLen:
		return 0, refuseValue(g.maxName, g.maxTokens, "%s=%d cannot be greater than max_model_len=%d. Please request fewer output tokens.", g.maxName, g.maxTokens, maxModelLen)
	case room < 0 && g.tokenized:
		// A tokenizer stops at the first token too many.
		return 0, tooLong(maxModelLen, maxModelLen+1)
	case room < 0:
		return 0, tooLong(maxModelLen, length)
	case room == 0:
		return 0, refuseValue("max_tokens", 0, "max_tokens must be at least 1, got 0.")
	case g.maxTokens > 0:
		return min(g.maxTokens, room), nil
	default:
		return room, nil
	}
}
