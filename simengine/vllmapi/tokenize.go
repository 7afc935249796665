package vllmapi

import "net/http"

// form reads the JSON body of a request about tokens; nil if it has answered.
func (s *Server) form(x *exchange) *form {
	body, ok := x.body(s.c.MaxBody)
	if !ok {
		return nil
	}
	if !isJSON(x.r) {
		unsupportedMedia.write(x)
		return nil
	}
	f := parseForm(body)
	name, _ := f.text("model")
	if f.err == nil {
		x.entry.Model, f.err = s.resolve(name)
	}
	return f
}

// tokenize answers with the tokens of a text or a chat.
func (s *Server) tokenize(x *exchange) {
	f := s.form(x)
	if f == nil {
		return
	}
	var tokens []token
	if _, chat := f.get("messages"); chat {
		tokens = renderChat(f)
	} else if text, ok := f.text("prompt"); ok {
		tokens = tokenizeText(text, f.boolean("add_special_tokens", true))
	} else {
		f.fail("missing", "prompt", "Field required")
	}
	if f.err != nil {
		f.err.write(x)
		return
	}
	if tokens == nil {
		tokens = []token{} // null otherwise
	}
	x.entry.PromptTokens = len(tokens)
	writeJSON(x, http.StatusOK, map[string]any{
		"count": len(tokens), "max_model_len": s.c.MaxModelLen, "tokens": tokens, "token_strs": nil,
	})
}

// detokenize answers with the text of tokens.
func (s *Server) detokenize(x *exchange) {
	f := s.form(x)
	if f == nil {
		return
	}
	ids, ok := f.list("tokens")
	if !ok {
		f.fail("missing", "tokens", "Field required")
	}
	tokens := readTokens(f, "tokens", ids)
	if f.err != nil {
		f.err.write(x)
		return
	}
	writeJSON(x, http.StatusOK, map[string]string{"prompt": detokenize(tokens)})
}
