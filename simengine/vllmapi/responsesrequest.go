package vllmapi

import (
	"encoding/json"
	"net/http"
	"slices"
)

// response is what an answer of the Responses API says of its request.
type response struct {
	conversation *conversation
	temperature  float64
	topP         float64
	presence     float64
	frequency    float64
	parallel     bool
	store        bool
	truncation   string
	tier         string
	given        map[string]json.RawMessage // members that come back as they are
}

// readResponses reads a request of the Responses API.
func readResponses(s *Server, f *form, h http.Header) *generation {
	g := newGeneration(f, h)
	r := &response{given: map[string]json.RawMessage{}}
	g.response = r
	for _, name := range []string{"instructions", "metadata", "max_tool_calls", "previous_response_id", "reasoning", "text", "user", "tools", "tool_choice"} {
		if raw, ok := f.get(name); ok {
			r.given[name] = slices.Clone(raw)
		}
	}
	g.readSampling(f)
	g.n = 1
	r.temperature, r.topP = f.number("temperature", 1), f.number("top_p", 1)
	r.presence, r.frequency = f.number("presence_penalty", 0), f.number("frequency_penalty", 0)
	g.readMaxTokens(f, "max_output_tokens")
	g.readLimits(f)
	r.store = f.boolean("store", true) && s.store != nil
	if f.has("prompt") {
		f.adopt(refuseParam("prompt", "prompt template is not supported"))
	}
	switch background := f.boolean("background", false); {
	case background && !f.boolean("store", true):
		f.adopt(refuseParam("background", "background can only be used when `store` is true"))
	case background:
		g.refuseLate(&apiError{http.StatusBadRequest, "invalid_request_error", "This vLLM engine does not support `store=True` and therefore does not support the background mode. To enable these features, set the environment variable `VLLM_ENABLE_RESPONSES_API_STORE=1` when launching the vLLM server.", "background"})
	}
	r.tier = readChoice(f, "service_tier", "auto", "auto", "default", "flex", "scale", "priority")
	r.truncation = readChoice(f, "truncation", "disabled", "disabled", "auto")
	if reasoning, ok := f.sub("reasoning"); ok {
		effort, _ := reasoning.text("effort")
		g.think = effort != "none"
		f.adopt(reasoning.err)
	}
	g.readTextFormat(f)
	g.readIncluded(f)
	c := g.readInput(s, f)
	g.readResponsesTools(f, c)
	r.parallel, r.conversation = g.parallel, c
	if f.failed() {
		return g
	}
	g.refuseTools(s)
	g.prompts = [][]token{c.tokens()}
	if over := len(g.prompts[0]) - (s.c.MaxModelLen - 1); over > 0 && r.truncation == "auto" {
		g.prompts[0] = g.prompts[0][over:]
	}
	return g
}

// readChoice reads one of several words.
func readChoice(f *form, name, absent string, words ...string) string {
	word, ok := f.text(name)
	if !ok {
		return absent
	}
	if !slices.Contains(words, word) {
		f.fail("literal_error", name, "Input should be "+orList(words))
	}
	return word
}

// orList is words in pydantic's enumeration.
func orList(words []string) string {
	var list string
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			list += " or "
		default:
			list += ", "
		}
		list += "'" + w + "'"
	}
	return list
}

// readIncluded reads whether log probabilities go with the answer.
func (g *generation) readIncluded(f *form) {
	items, _ := f.list("include")
	top := f.count("top_logprobs", 0)
	for _, raw := range items {
		if string(raw) == `"message.output_text.logprobs"` {
			g.logprobs = max(0, top)
		}
	}
	g.boundLogprobs("sample", "logprobs", g.logprobs)
}

// readInput reads what the conversation is by now: the instructions, what an
// earlier response is the end of, and the input.
func (g *generation) readInput(s *Server, f *form) *conversation {
	c := &conversation{generate: true}
	if text, ok := f.text("instructions"); ok && text != "" {
		c.turns = append(c.turns, turn{role: "system", content: appendText(nil, text)})
	}
	if id, ok := f.text("previous_response_id"); ok {
		earlier := s.store.turns(id)
		if earlier == nil {
			g.refuseLate(unknownResponse(id))
		}
		c.turns = append(c.turns, earlier...)
	}
	raw, ok := f.get("input")
	switch {
	case !ok:
		f.missing("input")
	case raw[0] == '"':
		c.turns = append(c.turns, turn{role: "user", content: appendText(nil, unquote(raw))})
	default:
		items, _ := f.list("input")
		for i, raw := range items {
			c.readItem(f, item(f.at("input"), i), raw)
		}
	}
	return c
}

func unknownResponse(id string) *apiError {
	return &apiError{http.StatusNotFound, "invalid_request_error", "Response with id '" + id + "' not found.", "response_id"}
}

// readItem adds an item of the input. Calls of tools belong to the turn of the
// assistant before them; thoughts are not in the prompt.
func (c *conversation) readItem(f *form, loc string, raw json.RawMessage) {
	m := f.within(loc, raw)
	if m == nil {
		return
	}
	kind, _ := m.text("type")
	switch {
	case kind == "function_call":
		arguments, _ := m.text("arguments")
		c.addCall(call{m.need("call_id"), m.need("name"), arguments})
	case kind == "function_call_output":
		t := turn{role: "tool", result: m.need("call_id")}
		if raw, ok := m.get("output"); ok && raw[0] == '"' {
			t.content = appendText(nil, unquote(raw))
		} else if ok {
			t.content = appendText(nil, canonical(raw))
		}
		c.turns = append(c.turns, t)
	case kind == "reasoning":
	case kind == "message" || kind == "" && m.has("role"):
		t := turn{role: m.need("role")}
		t.content, _ = readContent(m)
		c.turns = append(c.turns, t)
	default:
		m.adopt(refuseParam("input", "Unsupported input item type: %s", kind))
	}
	f.adopt(m.err)
}

// addCall adds a call to the assistant's turn.
func (c *conversation) addCall(called call) {
	if n := len(c.turns); n == 0 || c.turns[n-1].role != "assistant" {
		c.turns = append(c.turns, turn{role: "assistant"})
	}
	last := &c.turns[len(c.turns)-1]
	last.content = appendCall(last.content[:len(last.content):len(last.content)], called.id, called.name, called.arguments)
}

// answered is the conversation with the answer as its last turn.
func (c *conversation) answered(q *sequence) []turn {
	turns := slices.DeleteFunc(slices.Clone(c.turns), func(t turn) bool { return t.role == "system" })
	answer := turn{role: "assistant", content: appendText(nil, q.said(content))}
	for _, called := range q.calls() {
		answer.content = appendCall(answer.content, called.id, called.name, called.arguments)
	}
	return append(turns, answer)
}

func (g *generation) readResponsesTools(f *form, c *conversation) {
	items, _ := f.list("tools")
	g.parallel = f.boolean("parallel_tool_calls", true)
	g.readToolItems(f, items, func(t *form) *form {
		if kind, _ := t.text("type"); kind != "function" {
			return nil // a tool of the server's, of which there is none
		}
		name, _ := t.text("name")
		description, _ := t.get("description")
		parameters, _ := t.get("parameters")
		c.addTool(name, description, parameters)
		return t
	})
	if len(g.tools) > 0 {
		g.choice.mode = toolsAuto
	}
	raw, _ := f.get("tool_choice")
	switch {
	case len(raw) == 0 || string(raw) == `"auto"`:
	case string(raw) == `"none"`:
		g.choice.mode = toolsNone
	case string(raw) == `"required"`:
		g.choice.mode = toolsRequired
		if len(items) == 0 {
			f.adopt(refuseParam("tool_choice", "Tool choice 'required' must be specified with 'tools' parameter."))
		}
	case raw[0] == '{':
		choice, _ := f.sub("tool_choice")
		name, _ := choice.text("name")
		g.name(f, name, refuseParam("tool_choice", "Tool choice 'function' not found in 'tools' parameter."))
	default:
		f.fail("literal_error", "tool_choice", "Input should be 'none', 'auto' or 'required'")
	}
}
