package vllmapi

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Bounds of a request. vLLM takes up to 16384 choices; each costs memory here
// as there, and clients of the API know 128 as the limit.
const (
	maxChoices        = 128
	maxPrompts        = 1024 // in one completions request
	maxSequences      = 4096 // choices times prompts
	maxStops          = 64   // stop strings and stop tokens each; OpenAI's API takes 4
	maxStopBytes      = 1024 // in one stop string
	completionsTokens = 16   // default of max_tokens on /v1/completions
	maxPriority       = 1<<31 - 1
)

// generation is a request to generate, of either kind.
type generation struct {
	chat    bool
	model   string
	salt    string
	prompts [][]token

	n         int
	maxTokens int // 0: as many as the context holds
	seed      uint64
	seeded    bool
	limits    limits // all but maxTokens
	priority  int
	echo      bool

	stream          bool
	includeUsage    bool
	continuousUsage bool
}

// readGeneration decodes and checks a body, but for the model's name and
// lengths.
func readGeneration(body []byte, chat bool, maxModelLen int) (*generation, *apiError) {
	f := parseForm(body)
	g := &generation{chat: chat}
	g.model, _ = f.text("model")
	g.salt, _ = f.text("cache_salt")
	if _, given := f.get("cache_salt"); given && g.salt == "" {
		f.refuse("cache_salt", "Parameter 'cache_salt' must be a non-empty string if provided.")
	}
	g.readStream(f)
	g.readSampling(f)
	g.readLimits(f)
	if f.err != nil {
		return nil, f.err
	}
	if chat {
		g.prompts = [][]token{renderChat(f)}
	} else {
		g.echo = f.boolean("echo", false)
		if s, _ := f.text("suffix"); s != "" {
			f.refuse("suffix", "suffix is not currently supported")
		}
		g.prompts = readPrompts(f, f.boolean("add_special_tokens", true))
	}
	g.truncate(f, maxModelLen)
	if g.n*len(g.prompts) > maxSequences {
		f.refuse("n", "n times the number of prompts must be at most %d.", maxSequences)
	}
	if f.err != nil {
		return nil, f.err
	}
	return g, nil
}

func (g *generation) readStream(f *form) {
	g.stream = f.boolean("stream", false)
	options, ok := f.sub("stream_options")
	if !ok {
		return
	}
	if !g.stream && len(options.members) > 0 {
		f.refuse("stream_options", "Stream options can only be defined when `stream=True`.")
	}
	g.includeUsage = options.boolean("include_usage", false)
	g.continuousUsage = g.includeUsage && options.boolean("continuous_usage_stats", false)
	f.adopt(options.err)
}

// readSampling checks what shapes the choice of tokens. Of it all, only n and
// seed matter to a simulator.
func (g *generation) readSampling(f *form) {
	g.n = f.count("n", 1)
	if g.n < 1 {
		f.refuse("n", "n must be at least 1, got %d.", g.n)
	}
	if g.n > maxChoices {
		f.refuse("n", "n must be at most %d, got %d.", maxChoices, g.n)
	}
	for _, name := range []string{"presence_penalty", "frequency_penalty"} {
		if v := f.number(name, 0); v < -2 || v > 2 {
			f.refuse(name, "%s must be in [-2, 2], got %v.", name, v)
		}
	}
	if v := f.number("repetition_penalty", 1); v <= 0 {
		f.refuse("repetition_penalty", "repetition_penalty must be greater than zero, got %v.", v)
	}
	temperature := f.number("temperature", 1)
	if temperature < 0 {
		f.refuse("temperature", "temperature must be non-negative, got %v.", temperature)
	}
	const greedy = 1e-5
	if temperature < greedy && g.n > 1 {
		f.refuse("n", "n must be 1 when using greedy sampling, got %d.", g.n)
	}
	if v := f.number("top_p", 1); v <= 0 || v > 1 {
		f.refuse("top_p", "top_p must be in (0, 1], got %v.", v)
	}
	if v := f.count("top_k", 0); v < -1 {
		f.refuse("top_k", "top_k must be 0 (disable), or at least 1, got %d.", v)
	}
	if v := f.number("min_p", 0); v < 0 || v > 1 {
		f.refuse("min_p", "min_p must be in [0, 1], got %v.", v)
	}
	if v, ok := f.integer("seed"); ok {
		g.seed, g.seeded = uint64(v), true
	}
	g.priority = f.count("priority", 0)
	if g.priority < -maxPriority || g.priority > maxPriority {
		f.refuse("priority", "priority is out of range.")
	}
}

func (g *generation) readLimits(f *form) {
	names := []string{"max_tokens"}
	if g.chat {
		names = []string{"max_completion_tokens", "max_tokens"}
	} else {
		g.maxTokens = completionsTokens
	}
	for _, name := range names {
		if _, given := f.get(name); !given {
			continue
		}
		g.maxTokens = f.count(name, 0)
		if g.maxTokens < 1 {
			f.refuse(name, "max_tokens must be at least 1, got %d.", g.maxTokens)
		}
		break
	}
	g.limits.minTokens = f.count("min_tokens", 0)
	if g.limits.minTokens < 0 {
		f.refuse("min_tokens", "min_tokens must be greater than or equal to 0, got %d.", g.limits.minTokens)
	}
	if g.maxTokens > 0 && g.limits.minTokens > g.maxTokens {
		f.refuse("min_tokens", "min_tokens must be less than or equal to max_tokens=%d, got %d.", g.maxTokens, g.limits.minTokens)
	}
	g.limits.ignoreEOS = f.boolean("ignore_eos", false)
	g.limits.keepStop = f.boolean("include_stop_str_in_output", false)
	g.limits.stop = readStops(f)
	ids, _ := f.list("stop_token_ids")
	if len(ids) > maxStops {
		f.refuse("stop_token_ids", "stop_token_ids must have at most %d elements.", maxStops)
		return
	}
	g.limits.stopTokens = readTokens(f, "stop_token_ids", ids)
}

func readStops(f *form) []string {
	raw, ok := f.get("stop")
	if !ok {
		return nil
	}
	var stops []string
	if raw[0] == '"' {
		s, _ := f.text("stop")
		stops = []string{s}
	} else if json.Unmarshal(raw, &stops) != nil {
		f.fail("list_type", "stop", "Input should be a valid list")
	}
	if len(stops) > maxStops {
		f.refuse("stop", "stop must have at most %d elements.", maxStops)
	}
	for _, s := range stops {
		if s == "" {
			f.refuse("stop", "stop cannot contain an empty string.")
		}
		if len(s) > maxStopBytes {
			f.refuse("stop", "stop strings must have at most %d bytes.", maxStopBytes)
		}
	}
	return stops
}

// readPrompts reads a text, texts, token ids, or lists of token ids.
func readPrompts(f *form, special bool) [][]token {
	raw, ok := f.get("prompt")
	if !ok {
		f.refuse("prompt", "Either prompt or prompt_embeds must be provided and non-empty.")
		return nil
	}
	if raw[0] == '"' {
		s, _ := f.text("prompt")
		return promptTexts(f, []string{s}, special)
	}
	items, ok := f.list("prompt")
	if !ok {
		return nil
	}
	if len(items) == 0 {
		f.refuse("prompt", "Either prompt or prompt_embeds must be provided and non-empty.")
		return nil
	}
	var texts []string
	switch items[0][0] {
	case '"':
		if json.Unmarshal(raw, &texts) != nil {
			f.fail("string_type", "prompt", "Input should be a valid string")
			return nil
		}
		return promptTexts(f, texts, special)
	case '[':
		if len(items) > maxPrompts {
			f.refuse("prompt", "prompt must have at most %d elements.", maxPrompts)
			return nil
		}
		prompts := make([][]token, len(items))
		for i, item := range items {
			var ids []json.RawMessage
			if json.Unmarshal(item, &ids) != nil {
				f.fail("list_type", "prompt", "Input should be a valid list")
				return nil
			}
			prompts[i] = promptTokens(f, ids)
		}
		return prompts
	}
	return [][]token{promptTokens(f, items)}
}

func promptTexts(f *form, texts []string, special bool) [][]token {
	if len(texts) > maxPrompts {
		f.refuse("prompt", "prompt must have at most %d elements.", maxPrompts)
		return nil
	}
	prompts := make([][]token, len(texts))
	for i, s := range texts {
		if s == "" {
			f.refuse("prompt", "Either prompt or prompt_embeds must be provided and non-empty.")
		}
		prompts[i] = tokenizeText(s, special)
	}
	return prompts
}

// tokenizeText is a plain text's tokens, after the begin-of-text token unless
// special tokens are off.
func tokenizeText(s string, special bool) []token {
	var tokens []token
	if special {
		tokens = append(tokens, tokenBegin)
	}
	return appendText(tokens, s)
}

func promptTokens(f *form, ids []json.RawMessage) []token {
	if len(ids) == 0 {
		f.refuse("prompt", "The prompt must not be empty.")
	}
	return readTokens(f, "prompt", ids)
}

// readTokens reads token ids: a vocabulary's, and those that /tokenize gives.
func readTokens(f *form, name string, ids []json.RawMessage) []token {
	tokens := make([]token, 0, len(ids))
	for _, raw := range ids {
		id, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil && strings.Trim(string(raw), "-0123456789") != "" {
			f.fail("int_type", name, "Input should be a valid integer")
			return nil
		}
		t := token(id)
		if err != nil || id < 0 || !t.valid() {
			f.refuse(name, "Token id %.20s is out of vocabulary", raw)
			return nil
		}
		tokens = append(tokens, t)
	}
	return tokens
}

// truncate keeps the end of prompts, where asked to; -1 stands for the whole
// context.
func (g *generation) truncate(f *form, maxModelLen int) {
	keep := f.count("truncate_prompt_tokens", 0)
	if keep < -1 || keep > maxModelLen {
		f.refuse("truncate_prompt_tokens", "truncate_prompt_tokens must be -1 or 1 to max_model_len (%d), got %d.", maxModelLen, keep)
		return
	}
	if keep == -1 {
		keep = maxModelLen - 1
	}
	if keep == 0 {
		return
	}
	for i, p := range g.prompts {
		g.prompts[i] = p[max(0, len(p)-keep):]
	}
}

// fit checks lengths against the model's and returns the bound of a reply to
// the i-th prompt.
func (g *generation) fit(i, maxModelLen int) (int, *apiError) {
	length := len(g.prompts[i])
	if length >= maxModelLen || g.maxTokens > maxModelLen-length {
		return 0, tooLong(maxModelLen, length, g.maxTokens)
	}
	if g.maxTokens > 0 {
		return g.maxTokens, nil
	}
	return maxModelLen - length, nil
}
