package vllmapi

import (
	"encoding/json"
	"net/http"
)

// readCompletion reads a request to complete texts.
func readCompletion(s *Server, f *form, h http.Header) *generation {
	g := newGeneration(f, h)
	g.readStreamOptions(f)
	g.readSampling(f)
	g.echo = f.boolean("echo", false)
	g.maxTokens = completionsTokens
	if raw, ok := f.get("max_tokens"); ok && g.echo && string(raw) == "0" {
		g.maxTokens, g.onlyEcho = 1, true
	} else {
		g.readMaxTokens(f, "max_tokens")
	}
	g.readLimits(f)
	g.readLogprobs(f, false)
	g.readIDs(f)
	g.readFormat(f)
	f.declare(declaredByBoth)
	g.refuseForeign(f)
	if _, ok := f.text("suffix"); ok {
		g.refuseLate(refuse("suffix", "suffix is only supported for models with FIM completion rendering"))
	}
	g.refuseEmbeds(f)
	g.prompts, g.tokenized = readPrompts(f, f.boolean("add_special_tokens", true))
	g.readTruncation(f, s.c.MaxModelLen)
	if g.n*len(g.prompts) > maxSequences {
		g.refuseLate(refuse("n", "n times the number of prompts must be at most %d.", maxSequences))
	}
	return g
}

// readIDs reads whether tokens go out by number.
func (g *generation) readIDs(f *form) {
	g.returnIDs = f.boolean("return_token_ids", false)
	g.asIDs = f.boolean("return_tokens_as_token_ids", false)
}

var noPrompt = refuseParam("prompt", "Either prompt or prompt_embeds must be provided and non-empty.")

// refuseEmbeds refuses prompts as embeddings, as a server does that wasn't told to
// take them.
func (g *generation) refuseEmbeds(f *form) {
	raw, ok := f.get("prompt_embeds")
	if !ok {
		return
	}
	if raw[0] != '"' && raw[0] != '[' {
		f.either("prompt_embeds", raw, invalid{kind: "bytes_type", msg: "Input should be a valid bytes"}, noList)
		return
	}
	f.adopt(refuseParam("prompt_embeds", "You must set `--enable-prompt-embeds` to input `prompt_embeds`."))
}

// readPrompts reads a text, texts, token ids, or lists of token ids; it tells
// whether they were texts.
func readPrompts(f *form, special bool) (prompts [][]token, texts bool) {
	raw, ok := f.get("prompt")
	if !ok || string(raw) == `""` {
		f.adopt(noPrompt)
		return nil, false
	}
	if !isPrompt(f, "prompt", raw) {
		return nil, false
	}
	return readTexts(f, "prompt", special)
}

// readTexts reads the member name as readPrompts does; it must be there.
func readTexts(f *form, name string, special bool) (prompts [][]token, texts bool) {
	raw, _ := f.get(name)
	if len(raw) > 0 && raw[0] == '"' {
		return promptTexts(f, name, []json.RawMessage{raw}, special), true
	}
	items, ok := f.list(name)
	if !ok {
		return nil, false
	}
	if len(items) == 0 {
		f.refuse("", "You must pass at least one prompt")
		return nil, false
	}
	switch items[0][0] {
	case '"':
		return promptTexts(f, name, items, special), true
	case '[':
		if tooManyPrompts(f, name, len(items)) {
			return nil, false
		}
		prompts := make([][]token, len(items))
		for i, raw := range items {
			ids, ok := scanList(raw)
			if !ok {
				f.invalid("list_type", item(f.at(name), i), "Input should be a valid list", raw)
				return nil, false
			}
			prompts[i] = readTokens(f, name, ids)
		}
		return prompts, false
	}
	return [][]token{readTokens(f, name, items)}, false
}

func tooManyPrompts(f *form, name string, n int) bool {
	if n > maxPrompts {
		f.adopt(refuseParam(name, "%s list length %d exceeds the maximum allowed count of %d. To increase this limit, set the VLLM_MAX_COMPLETION_PROMPTS environment variable.", name, n, maxPrompts))
	}
	return n > maxPrompts
}

func promptTexts(f *form, name string, items []json.RawMessage, special bool) [][]token {
	if tooManyPrompts(f, name, len(items)) {
		return nil
	}
	prompts := make([][]token, len(items))
	for i, raw := range items {
		if raw[0] != '"' {
			f.invalid("string_type", item(f.at(name), i), "Input should be a valid string", raw)
			return nil
		}
		prompts[i] = tokenizeText(unquote(raw), special)
	}
	return prompts
}

// tokenizeText is a plain text's tokens, after the begin-of-text token unless
// special tokens are off.
func tokenizeText(s string, special bool) []token {
	tokens := make([]token, 0, 1+len(s)/textBytes+1)
	if special {
		tokens = append(tokens, tokenBegin)
	}
	return appendText(tokens, s)
}
