package vllmapi

import (
	"encoding/json"
	"net/http"
	"strings"
)

// readMessages reads a request of Anthropic's Messages API.
func readMessages(s *Server, f *form, h http.Header) *generation {
	if raw, ok := f.get("cache_salt"); ok && string(raw) == `""` {
		f.fail("string_too_short", "cache_salt", "String should have at least 1 character")
		return &generation{}
	}
	g := newGeneration(f, h)
	if !f.has("model") {
		f.missing("model")
	} else if g.model == "" {
		f.valueError("model", "Model is required")
	}
	switch max := f.count("max_tokens", 0); {
	case !f.has("max_tokens"):
		f.missing("max_tokens")
	case max <= 0:
		f.valueError("max_tokens", "max_tokens must be positive")
	default:
		g.maxTokens, g.maxName = max, "max_completion_tokens"
	}
	f.declare(declaredByMessages)
	g.readSampling(f)
	g.readStops(f, "stop_sequences", false)
	g.limits.ignoreEOS = f.boolean("ignore_eos", false)
	g.includeUsage, g.continuousUsage = g.stream, g.stream
	if thinking, ok := f.sub("thinking"); ok {
		kind, _ := thinking.text("type")
		g.think = kind != "disabled"
		g.budget = thinking.count("budget_tokens", 0)
		f.adopt(thinking.err)
		if g.budget > 0 && g.budget >= g.maxTokens && g.maxTokens > 0 && !f.failed() {
			f.wholeError("thinking.budget_tokens must be less than max_tokens")
		}
	}
	c := g.readAnthropic(f)
	if f.failed() {
		return g
	}
	g.refuseTools(s)
	g.refuseLate(c.empty())
	g.prompts = [][]token{c.tokens()}
	return g
}

// empty is what vLLM says of a conversation without turns, nil of any other.
func (c *conversation) empty() *apiError {
	if len(c.turns) > 0 {
		return nil
	}
	return refuse("", "Cannot apply chat template to an empty conversation. Provide at least one message.")
}

// readAnthropic reads the conversation and the tools of such a request.
func (g *generation) readAnthropic(f *form) *conversation {
	c := &conversation{generate: true}
	if system := readSystem(f); system != "" {
		c.turns = append(c.turns, turn{role: "system", content: appendText(nil, system)})
	}
	messages, ok := f.list("messages")
	if !ok {
		f.missing("messages")
	}
	for i, raw := range messages {
		c.readMessage(f, item(f.at("messages"), i), raw)
	}
	g.readAnthropicTools(f, c)
	return c
}

// billing begins a line that a client's command puts before its system prompt,
// with a number that changes with each request; vLLM drops it, for its prefix
// cache's sake.
const billing = "x-anthropic-billing-header"

func readSystem(f *form) string {
	raw, ok := f.get("system")
	if !ok {
		return ""
	}
	if raw[0] == '"' {
		return unquote(raw)
	}
	if raw[0] != '[' {
		f.either("system", raw, noText, noList)
	}
	return systemText(f, "system")
}

// systemText joins the texts of a list of blocks, or is the text that stands
// for one.
func systemText(f *form, name string) string {
	blocks, _ := f.list(name)
	var b strings.Builder
	for i, raw := range blocks {
		block := f.within(item(f.at(name), i), raw)
		if block == nil {
			return ""
		}
		if text, _ := block.text("text"); !strings.HasPrefix(text, billing) {
			b.WriteString(text)
		}
		f.adopt(block.err)
	}
	return b.String()
}

// readMessage adds a message, and before it the results of tools that it
// brings.
func (c *conversation) readMessage(f *form, loc string, raw json.RawMessage) {
	m := f.within(loc, raw)
	if m == nil {
		return
	}
	role := m.need("role")
	switch role {
	case "user", "assistant", "system":
	case "ctx", "msg":
		role = "user"
	default:
		m.fail("literal_error", "role", "Input should be 'user', 'assistant' or 'system'")
	}
	raw, given := m.get("content")
	switch {
	case !given:
		m.missing("content")
	case raw[0] == '"' && role == "system":
		if text := unquote(raw); !strings.HasPrefix(text, billing) {
			c.turns = append(c.turns, turn{role: role, content: appendText(nil, text)})
		}
	case raw[0] == '"':
		c.turns = append(c.turns, turn{role: role, content: appendText(nil, unquote(raw))})
	case raw[0] != '[':
		m.either("content", raw, noText, noList)
	case role == "system":
		c.turns = append(c.turns, turn{role: role, content: appendText(nil, systemText(m, "content"))})
	default:
		c.readBlocks(m, role)
	}
	f.adopt(m.err)
}

func (c *conversation) readBlocks(m *form, role string) {
	all, _ := m.get("content")
	blocks, _ := m.list("content")
	t := turn{role: role}
	var run []string
	var calls []token
	some := role != "user"
	for i, raw := range blocks {
		b := m.within(item(m.at("content"), i), raw)
		if b == nil {
			return
		}
		switch kind := b.need("type"); kind {
		case "text":
			if text, ok := b.text("text"); ok {
				run, some = append(run, text), true
			}
		case "image":
			source, ok := b.sub("source")
			if !ok {
				b.missing("source")
				break
			}
			t.content = appendMedia(appendText(t.content, strings.Join(run, "\n")), "image_url "+imageURL(source))
			run, some = nil, true
		case "tool_use":
			id, _ := b.text("id")
			name, _ := b.text("name")
			input, _ := b.get("input")
			calls = appendCall(calls, id, name, pythonJSON(input))
			some = true
		case "tool_result":
			c.readResult(b)
		case "thinking", "redacted_thinking", "tool_reference": // not in the prompt
		default:
			m.either("content", all, noText)
			b.fail("literal_error", "type", "Input should be 'text', 'image', 'tool_use', 'tool_result', 'tool_reference', 'thinking', 'redacted_thinking', 'tool_addition' or 'tool_removal'")
		}
		m.adopt(b.err)
	}
	if !some {
		return
	}
	t.content = append(appendText(t.content, strings.Join(run, "\n")), calls...)
	c.turns = append(c.turns, t)
}

// readResult adds the result of a tool as a turn of its own.
func (c *conversation) readResult(b *form) {
	t := turn{role: "tool"}
	t.result, _ = b.text("tool_use_id")
	if raw, ok := b.get("content"); ok && raw[0] == '"' {
		t.content = appendText(nil, unquote(raw))
	} else if ok {
		blocks, _ := b.list("content")
		var texts []string
		var media []token
		for i, raw := range blocks {
			block := b.within(item(b.at("content"), i), raw)
			if block == nil {
				return
			}
			if source, ok := block.sub("source"); ok {
				media = appendMedia(media, "image_url "+imageURL(source))
			} else if text, ok := block.text("text"); ok {
				texts = append(texts, text)
			}
			b.adopt(block.err)
		}
		t.content = append(appendText(nil, strings.Join(texts, "\n")), media...)
	}
	c.turns = append(c.turns, t)
}

// imageURL is an image's address, which may hold its bytes.
func imageURL(source *form) string {
	if kind, _ := source.text("type"); kind == "url" {
		url, _ := source.text("url")
		return url
	}
	media, ok := source.text("media_type")
	if !ok {
		media = "image/jpeg"
	}
	data, _ := source.text("data")
	return "data:" + media + ";base64," + data
}
