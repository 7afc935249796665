package vllmapi

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// body reads a JSON body; nil if it has answered.
func (s *Server) body(x *exchange) *form {
	body, ok := x.body(s.c.MaxBody)
	if !ok {
		return nil
	}
	if !isJSON(x.r) {
		unsupportedMedia.write(x)
		return nil
	}
	f := parseForm(body)
	if err := f.problem(nil); err != nil {
		err.write(x)
		return nil
	}
	return f
}

// resolveForm finds the model that a body means.
func (s *Server) resolveForm(x *exchange, f *form) {
	name, _ := f.text("model")
	if !f.failed() {
		x.entry.Model, f.err = s.resolve(name)
	}
}

// tokenize answers with the tokens of a text or a chat.
func (s *Server) tokenize(x *exchange) {
	f := s.body(x)
	if f == nil {
		return
	}
	var tokens []token
	var late *apiError
	if f.has("messages") {
		if raw, _ := f.get("messages"); raw[0] != '[' && !f.has("prompt") {
			f.missing("prompt")
		}
		c := readConversation(f, true)
		tokens, late = c.tokens(), c.late
	} else if text, ok := f.text("prompt"); ok {
		tokens = tokenizeText(text, f.boolean("add_special_tokens", true))
	} else {
		prompt, given := f.get("prompt")
		switch {
		case prompt == nil:
			f.missing("prompt")
		case !given:
			f.invalid(noText.kind, f.at("prompt"), noText.msg, prompt)
		}
		f.missing("messages")
	}
	texts := f.boolean("return_token_strs", false)
	s.resolveForm(x, f)
	f.adopt(late)
	if err := f.problem(nil); err != nil {
		err.write(x)
		return
	}
	x.entry.PromptTokens = len(tokens)
	b := strconv.AppendInt([]byte(`{"count":`), int64(len(tokens)), 10)
	b = strconv.AppendInt(append(b, `,"max_model_len":`...), int64(s.c.MaxModelLen), 10)
	b = appendIDs(append(b, `,"tokens":`...), tokens)
	b = append(b, `,"token_strs":`...)
	if texts {
		b = appendTokenTexts(b, tokens)
	} else {
		b = append(b, "null"...)
	}
	writeBody(x, http.StatusOK, append(b, '}'))
}

func appendTokenTexts(b []byte, tokens []token) []byte {
	var g generation
	b = append(b, '[')
	for i, t := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, g.tokenText(t))
	}
	return append(b, ']')
}

// readDetokenized reads token ids of which those out of the vocabulary stand for
// no text, if they fit 32 bits.
func readDetokenized(f *form, ids []json.RawMessage) []token {
	for i, raw := range ids {
		const most = "9223372036854775807"
		switch {
		case !isWhole(raw):
		case raw[0] == '-' && string(raw) != "-0":
			f.invalid("greater_than_equal", item(f.at("tokens"), i), "Input should be greater than or equal to 0", raw)
		case further(string(raw), most):
			f.invalid("less_than_equal", item(f.at("tokens"), i), "Input should be less than or equal to "+most, raw)
		}
	}
	tokens, foreign := tokenIDs(f, "tokens", ids)
	if further(foreign, "4294967295") && !f.failed() {
		f.refuse("", "number too large to fit in target type")
	}
	return tokens
}

// detokenize answers with the text of tokens.
func (s *Server) detokenize(x *exchange) {
	f := s.body(x)
	if f == nil {
		return
	}
	ids, ok := f.list("tokens")
	if !ok {
		f.missing("tokens")
	}
	tokens := readDetokenized(f, ids)
	s.resolveForm(x, f)
	if err := f.problem(nil); err != nil {
		err.write(x)
		return
	}
	writeBody(x, http.StatusOK, append(appendString([]byte(`{"prompt":`), detokenize(tokens)), '}'))
}

// countTokens answers how long a request of the Messages API is.
func (s *Server) countTokens(x *exchange) {
	x.anthropic = true
	f := s.body(x)
	if f == nil {
		return
	}
	var g generation
	if !f.has("model") {
		f.missing("model")
	}
	c := g.readAnthropic(f)
	s.resolveForm(x, f)
	f.adopt(c.empty())
	if err := f.problem(messagesAPI.order); err != nil {
		err.write(x)
		return
	}
	n := len(c.tokens())
	x.entry.PromptTokens = n
	b := strconv.AppendInt([]byte(`{"input_tokens":`), int64(n), 10)
	b = strconv.AppendInt(append(b, `,"context_management":{"original_input_tokens":`...), int64(n), 10)
	writeBody(x, http.StatusOK, append(b, `}}`...))
}
