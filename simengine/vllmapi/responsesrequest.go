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
	g.ignoresN = true
	g.readSampling(f)
	r.temperature, r.topP = f.number("temperature", 1), f.number("top_p", 1)
	r.presence, r.frequency = readPenalty(f, "presence_penalty"), readPenalty(f, "frequency_penalty")
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
	r.truncation = readChoice(f, "truncation", "disabled", "auto", "disabled")
	if reasoning, ok := f.sub("reasoning"); ok {
		g.think = readChoice(reasoning, "effort", "", efforts...) != "none"
		f.adopt(reasoning.err)
	}
	f.declare(declaredByResponses)
	g.refuseForeign(f)
	g.readTextFormat(f)
	g.readIncluded(f)
	c := g.readInput(s, f)
	g.readResponsesTools(f, c)
	r.parallel, r.conversation = g.parallel, c
	if f.failed() {
		return g
	}
	g.refuseTools(s)
	g.refuseLate(c.empty())
	g.prompts = [][]token{c.tokens()}
	if over := len(g.prompts[0]) - (s.c.MaxModelLen - 1); over > 0 && r.truncation == "auto" {
		g.prompts[0] = g.prompts[0][over:]
	}
	return g
}

// readPenalty reads a number that this API bounds by its type.
func readPenalty(f *form, name string) float64 {
	v := f.number(name, 0)
	switch {
	case v > 2:
		f.fail("less_than_equal", name, "Input should be less than or equal to 2")
	case v < -2:
		f.fail("greater_than_equal", name, "Input should be greater than or equal to -2")
	}
	return v
}

// readChoice reads one of several words.
func readChoice(f *form, name, absent string, words ...string) string {
	raw, ok := f.get(name)
	if !ok {
		return absent
	}
	if word := plain(raw); raw[0] == '"' && slices.Contains(words, word) {
		return word
	}
	f.fail("literal_error", name, "Input should be "+orList(words))
	return absent
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

// includable is what a client may want with the answer.
var includable = []string{"code_interpreter_call.outputs", "computer_call_output.output.image_url", "file_search_call.results",
	"message.input_image.image_url", "message.output_text.logprobs", "reasoning.encrypted_content"}

// readIncluded reads whether log probabilities go with the answer.
func (g *generation) readIncluded(f *form) {
	items, _ := f.list("include")
	top := f.count("top_logprobs", 0)
	for i, raw := range items {
		switch {
		case string(raw) == `"message.output_text.logprobs"`:
			g.logprobs = max(0, top)
		case !slices.Contains(includable, plain(raw)):
			f.invalid("literal_error", item(f.at("include"), i), "Input should be "+orList(includable), raw)
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
	case raw[0] != '[':
		f.either("input", raw, noText, noList)
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
		if !m.isMessage() {
			list, _ := f.get("input")
			f.either("input", list, noText)
			m.noMessage()
			return
		}
		t := turn{role: m.need("role")}
		t.content, _ = readContent(m)
		c.turns = append(c.turns, t)
	default:
		m.adopt(refuseParam("input", "Unsupported input item type: %s", kind))
	}
	f.adopt(m.err)
}

// speakers are the roles that an item of the input may have.
var speakers = []string{"user", "assistant", "system", "developer"}

func (f *form) isMessage() bool {
	role, _ := f.get("role")
	return slices.Contains(speakers, plainWord(role)) && f.has("content")
}

// noMessage notes what an item lacks to be a message.
func (f *form) noMessage() {
	const kind = "EasyInputMessageParam"
	if !f.has("content") {
		f.invalid("missing", f.at(kind)+".content", "Field required", f.raw)
	}
	role, given := f.get("role")
	switch {
	case !given:
		f.invalid("missing", f.at(kind)+".role", "Field required", f.raw)
	case !slices.Contains(speakers, plainWord(role)):
		f.invalid("literal_error", f.at(kind)+".role", "Input should be "+orList(speakers), role)
	}
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

// hosted are the tools that a server may have itself.
var hosted = []string{"file_search", "computer", "computer_use_preview", "web_search", "web_search_2025_08_26", "mcp", "code_interpreter",
	"image_generation", "local_shell", "shell", "custom", "namespace", "tool_search", "web_search_preview", "web_search_preview_2025_03_11", "apply_patch"}

func (g *generation) readResponsesTools(f *form, c *conversation) {
	items, _ := f.list("tools")
	g.parallel = f.boolean("parallel_tool_calls", true)
	g.readToolItems(f, items, func(t *form) *form {
		kind, _ := t.get("type")
		switch word := plainWord(kind); {
		case word == "function":
		case slices.Contains(hosted, word):
			return nil // a tool of the server's, of which there is none
		default:
			t.invalid("missing", t.at("FunctionTool.name"), "Field required", t.raw)
			t.invalid("literal_error", t.at("FunctionTool.type"), "Input should be 'function'", kind)
			return nil
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
	default:
		g.readHosted(f, raw)
	}
}

var noFunction = refuseParam("tool_choice", "Tool choice 'function' not found in 'tools' parameter.")

// readHosted reads a choice that is an object. Of tools that the server would
// have, there are none.
func (g *generation) readHosted(f *form, raw json.RawMessage) {
	if choice := f.inside("", raw); choice != nil {
		if word, _ := choice.get("type"); plainWord(word) == "function" && !choice.has("name") {
			f.adopt(noFunction)
			return
		}
	}
	before := len(*f.notes)
	kind, ok := f.kindOf(f.at("tool_choice"), raw, choiceKinds)
	if !ok && f.err == nil {
		word := invalid{kind: "literal_error", loc: f.at("tool_choice"), msg: "Input should be 'none', 'auto' or 'required'", input: shownInput(raw)}
		*f.notes = slices.Insert(*f.notes, before, word)
	}
	if kind == "function" {
		choice, _ := f.sub("tool_choice")
		name, _ := choice.text("name")
		g.name(f, name, noFunction)
	}
}
