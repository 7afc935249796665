package vllmapi

import (
	"encoding/json"
	"net/http"
	"strings"
)

// readChat reads a request for the next turn of a chat.
func readChat(s *Server, f *form, h http.Header) *generation {
	g := newGeneration(f, h)
	g.readStreamOptions(f)
	g.readSampling(f)
	g.readMaxTokens(f, "max_completion_tokens", "max_tokens")
	g.readLimits(f)
	g.echo = f.boolean("echo", false)
	g.readLogprobs(f, true)
	g.readIDs(f)
	g.readThinking(f)
	g.readTools(f)
	g.readFormat(f)
	c := readConversation(f, true)
	if f.failed() {
		return g
	}
	g.refuseTools(s)
	g.refuseLate(c.late)
	g.readEcho(c)
	g.prompts = [][]token{c.tokens()}
	g.readTruncation(f, s.c.MaxModelLen)
	return g
}

// readThinking reads whether the model is to think, how long, and whether the
// client wants to see it.
func (g *generation) readThinking(f *form) {
	effort, _ := f.text("reasoning_effort")
	switch effort {
	case "", "none", "minimal", "low", "medium", "high", "xhigh", "max":
	default:
		f.fail("literal_error", "reasoning_effort", "Input should be 'none', 'minimal', 'low', 'medium', 'high', 'xhigh' or 'max'")
	}
	g.think = effort != "none"
	if kwargs, ok := f.sub("chat_template_kwargs"); ok {
		g.think = kwargs.boolean("enable_thinking", g.think)
		f.adopt(kwargs.err)
	}
	g.hidden = !f.boolean("include_reasoning", true)
	if budget, ok := f.integer("thinking_token_budget"); ok && budget != -1 {
		if budget < 0 {
			f.adopt(refuseValue("thinking_token_budget", budget, "`thinking_token_budget` must be a non-negative integer or -1 for unlimited."))
		}
		g.think = g.think && budget > 0
		g.budget = int(min(budget, maxPriority))
	}
}

// readEcho finds what an echo repeats: the last message, if the answer is of
// the same role.
func (g *generation) readEcho(c *conversation) {
	if len(c.turns) == 0 {
		return
	}
	last := c.turns[len(c.turns)-1]
	if !c.generate {
		g.role = last.role
	}
	if g.echo && last.role == g.role {
		g.echoed = last.text
	}
}

// readConversation reads messages and tools; generate is whether the assistant
// is to speak if nothing else is said.
func readConversation(f *form, generate bool) *conversation {
	c := &conversation{}
	messages, ok := f.list("messages")
	if !ok {
		f.missing("messages")
		return c
	}
	c.resume = f.boolean("continue_final_message", false)
	c.generate = f.boolean("add_generation_prompt", generate)
	if c.generate && c.resume {
		f.refuse("", "Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
	}
	if len(messages) == 0 {
		c.late = refuse("", "Cannot apply chat template to an empty conversation. Provide at least one message.")
	}
	c.turns = make([]turn, len(messages))
	for i, raw := range messages {
		c.turns[i] = readTurn(f, item(f.at("messages"), i), raw)
	}
	tools, _ := f.list("tools")
	for _, raw := range tools {
		c.tools = appendText(append(c.tools, tokenTools), canonical(raw))
	}
	return c
}

func readTurn(f *form, loc string, raw json.RawMessage) turn {
	m := f.within(loc, raw)
	if m == nil {
		return turn{}
	}
	var t turn
	if !m.has("role") {
		noRole(m)
	}
	t.role, _ = m.text("role")
	t.name, _ = m.text("name")
	t.result, _ = m.text("tool_call_id")
	t.content, t.text = readContent(m)
	t.content = appendCalls(m, t.content)
	f.adopt(m.err)
	return t
}

// noRole notes what pydantic says of a message without a role: what each kind
// of message lacks.
func noRole(m *form) {
	for _, lack := range []struct{ kind, name string }{
		{"ChatCompletionDeveloperMessageParam", "role"}, {"ChatCompletionSystemMessageParam", "role"},
		{"ChatCompletionUserMessageParam", "role"}, {"ChatCompletionAssistantMessageParam", "role"},
		{"ChatCompletionToolMessageParam", "role"}, {"ChatCompletionToolMessageParam", "tool_call_id"},
		{"ChatCompletionFunctionMessageParam", "name"}, {"ChatCompletionFunctionMessageParam", "role"},
		{"CustomChatCompletionMessageParam", "role"}, {"Message", "author"}, {"Message", "recipient"},
	} {
		if !m.has(lack.name) {
			m.invalid("missing", m.loc+"."+lack.kind+"."+lack.name, "Field required", m.raw)
		}
	}
}

// readContent reads a message's content: absent, a string, or a list of parts.
// Neighbouring texts of a list are joined by a line feed, as vLLM does for
// templates that take strings; a list of one text is that text.
func readContent(m *form) (tokens []token, text string) {
	raw, ok := m.get("content")
	if !ok {
		return nil, ""
	}
	if raw[0] == '"' {
		text = unquote(raw)
		return appendText(nil, text), text
	}
	parts, ok := m.list("content")
	if !ok {
		return nil, ""
	}
	var run []string
	for i, raw := range parts {
		text, media := readPart(m, raw, item(m.at("content"), i))
		if media == "" {
			run = append(run, text)
			continue
		}
		tokens = appendMedia(appendText(tokens, strings.Join(run, "\n")), media)
		run = nil
	}
	text = strings.Join(run, "\n")
	return appendText(tokens, text), text
}

// readPart reads a text, or what stands for an image, a sound or a file.
func readPart(m *form, raw json.RawMessage, loc string) (text, media string) {
	if raw[0] == '"' {
		return unquote(raw), ""
	}
	p := m.within(loc, raw)
	if p == nil {
		return "", ""
	}
	kind := p.need("type")
	ok, missing := true, kind
	switch kind {
	case "":
	case "text", "input_text", "output_text":
		text, ok = p.text("text")
		missing = "text"
	case "refusal", "thinking":
		text, ok = p.text(kind)
	case "image_url", "audio_url", "video_url", "input_image", "input_audio", "file", "input_file":
		media, ok = readMedia(p, kind)
	default:
		p.refuse("", "Unknown part type: %s", kind)
	}
	if !ok {
		p.missing(missing)
	}
	m.adopt(p.err)
	return text, media
}

// readMedia finds what tells one file from another: its address, which may
// hold its bytes, or else all that the part says of it.
func readMedia(p *form, kind string) (string, bool) {
	for _, name := range []string{kind, "image_url", "file"} {
		raw, ok := p.get(name)
		if !ok {
			continue
		}
		if raw[0] == '"' {
			return kind + " " + unquote(raw), true
		}
		if address := p.within("", raw); address != nil {
			if url, _ := address.text("url"); url != "" {
				return kind + " " + url, true
			}
		}
		return kind + " " + canonical(raw), true
	}
	return "", false
}

// appendCalls adds the tool calls of an assistant's message.
func appendCalls(m *form, tokens []token) []token {
	calls, _ := m.list("tool_calls")
	for i, raw := range calls {
		c := m.within(item(m.at("tool_calls"), i), raw)
		if c == nil {
			return nil
		}
		id, _ := c.text("id")
		function, ok := c.sub("function")
		if !ok {
			tokens = appendText(append(tokens, tokenCall), id)
			m.adopt(c.err)
			continue
		}
		name, _ := function.text("name")
		arguments, _ := function.get("arguments")
		text := canonical(arguments)
		if len(arguments) > 0 && arguments[0] == '"' {
			text = unquote(arguments)
		}
		tokens = appendCall(tokens, id, name, text)
		c.adopt(function.err)
		m.adopt(c.err)
	}
	return tokens
}
