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
	g.readThinking(s, f)
	f.declare(declaredByChats)
	g.refuseForeign(f)
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

// efforts are the words of how hard a model is to think.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// readThinking reads whether the model is to think, how long, and whether the
// client wants to see it.
func (g *generation) readThinking(s *Server, f *form) {
	g.think = readChoice(f, "reasoning_effort", "", efforts...) != "none"
	if kwargs, ok := f.dict("chat_template_kwargs"); ok {
		g.think = kwargs.boolean("enable_thinking", g.think)
		f.adopt(kwargs.err)
	}
	g.hidden = !f.boolean("include_reasoning", true)
	raw, _ := f.get("thinking_token_budget")
	if raw == nil || string(raw) == "null" {
		return
	}
	switch budget, ok := wholeNumber(raw); {
	case !ok || raw[0] == '"' || budget < -1:
		f.adopt(refuseValue("thinking_token_budget", plain(raw), "`thinking_token_budget` must be a non-negative integer or -1 for unlimited."))
	case budget == -1:
	case !s.c.Reasoning:
		g.refuseLate(refuse("", "thinking_token_budget is set but reasoning_config is not configured. Please set --reasoning-parser and/or --reasoning-config to use thinking_token_budget."))
	default:
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
	switch {
	case c.generate && c.resume && f.has("add_generation_prompt"):
		f.refuse("", "Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
	case c.generate && c.resume:
		f.refuse("", "continue_final_message and add_generation_prompt are not compatible. Use continue_final_message when you want the model to continue "+
			"the final message, and add_generation_prompt when you want to add a header that will prompt it to start a new assistant message instead.")
	}
	c.turns = make([]turn, len(messages))
	c.late = c.empty()
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
	m := readMessageOf(f, loc, raw)
	if m == nil {
		return turn{}
	}
	var t turn
	t.role, _ = m.text("role")
	t.name, _ = m.text("name")
	t.result, _ = m.text("tool_call_id")
	t.content, t.text = readContent(m)
	t.content = appendCalls(m, t.content)
	f.adopt(m.err)
	return t
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

// partTypes are those of vLLM.
const partTypes = "audio_embeds, audio_url, image_embeds, image_pil, image_url, input_audio, input_image, input_text, output_text, " +
	"prompt_embeds, refusal, text, thinking, tool_reference, video_embeds, video_url"

// readPart reads a text, or what stands for an image, a sound or a file.
func readPart(m *form, raw json.RawMessage, loc string) (text, media string) {
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
		p.adopt(refuseValue("type", kind, "Unsupported chat content part type: '%s'. Supported types: %s.", kind, partTypes))
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
