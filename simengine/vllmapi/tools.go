package vllmapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// tool is a function that the model may call.
type tool struct {
	name       string
	parameters json.RawMessage // JSON schema of its arguments, or nil
}

// toolMode is whether the model is to call tools.
type toolMode int

const (
	toolsNone     toolMode = iota // it may not
	toolsAuto                     // it does as it likes
	toolsRequired                 // it must call one
	toolsNamed                    // it must call the one of toolChoice.name
)

type toolChoice struct {
	mode toolMode
	name string
}

// maxTools bounds the tools of a request.
const maxTools = 1024

const namedUsage = "Correct usage: `{\"type\": \"function\", \"function\": {\"name\": \"my_function\"}}`"

// readTools reads the tools of a chat and the choice among them.
func (g *generation) readTools(f *form) {
	items, given := f.list("tools")
	if given && len(items) == 0 {
		f.adopt(refuseParam("tools", "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely."))
		return
	}
	g.parallel = f.boolean("parallel_tool_calls", true)
	g.readToolItems(f, items, func(t *form) *form {
		readChoice(t, "type", "function", "function")
		function, ok := t.sub("function")
		if !t.has("function") {
			t.missing("function")
		}
		if ok {
			wantText(function, "description")
			wantObject(function, "parameters")
		}
		return function
	})
	raw, chosen := f.get("tool_choice")
	if !chosen {
		if given {
			g.choice.mode = toolsAuto
		}
		return
	}
	if string(raw) == `"none"` {
		return
	}
	if !given {
		f.adopt(refuseParam("tool_choice", "When using `tool_choice`, `tools` must be set."))
		return
	}
	switch {
	case string(raw) == `"auto"`:
		g.choice.mode = toolsAuto
	case string(raw) == `"required"`:
		g.choice.mode = toolsRequired
	case raw[0] == '{':
		g.readNamed(f, raw)
	default:
		f.adopt(refuseParam("tool_choice", "Invalid value for `tool_choice`: %s! Only named tools, \"none\", \"auto\" or \"required\" are supported.", plain(raw)))
	}
}

// readToolItems reads tools, of each what function finds in it.
func (g *generation) readToolItems(f *form, items []json.RawMessage, function func(*form) *form) {
	if len(items) > maxTools {
		f.refuse("tools", "tools must have at most %d elements.", maxTools)
		return
	}
	for i, raw := range items {
		t := f.within(item(f.at("tools"), i), raw)
		if t == nil {
			return
		}
		if inner := function(t); inner != nil {
			name := inner.need("name")
			parameters, _ := inner.get("parameters")
			if schema, ok := inner.get("input_schema"); ok {
				parameters = schema
			}
			g.tools = append(g.tools, tool{name, slices.Clone(parameters)})
			t.adopt(inner.err)
		}
		f.adopt(t.err)
	}
}

// plain is a value without the quotes of a string.
func plain(raw json.RawMessage) string {
	if raw[0] == '"' {
		return unquote(raw)
	}
	return string(raw[:min(len(raw), inputMax)])
}

// readNamed reads a choice that names its function.
func (g *generation) readNamed(f *form, raw json.RawMessage) {
	c := f.within(f.at("tool_choice"), raw)
	function, ok := c.sub("function")
	if !ok {
		inner, _ := c.get("function")
		f.err = refuseParam("tool_choice.function", "Invalid value for `function`: `%s` in `tool_choice`! %s", shownInput(inner), namedUsage)
		return
	}
	if !function.has("name") {
		f.adopt(refuseParam("tool_choice.function.name", "Expected field `name` in `function` in `tool_choice`! %s", namedUsage))
		return
	}
	name, _ := function.text("name")
	if name == "" {
		inner, _ := function.get("name")
		f.adopt(refuseParam("tool_choice.function.name", "Invalid `name` in `function`: `%s` in `tool_choice`! %s", shownInput(inner), namedUsage))
		return
	}
	g.name(f, name, refuseParam("tool_choice", "The tool specified in `tool_choice` does not match any of the specified `tools`"))
}

// name chooses the tool of that name, or refuses with unknown.
func (g *generation) name(f *form, name string, unknown *apiError) {
	if !slices.ContainsFunc(g.tools, func(t tool) bool { return t.name == name }) {
		f.adopt(unknown)
		return
	}
	g.choice = toolChoice{toolsNamed, name}
}

// refuseTools is what a server says that has no tool parser.
func (g *generation) refuseTools(s *Server) {
	if !s.c.NoToolParser {
		return
	}
	switch g.choice.mode {
	case toolsAuto:
		g.refuseLate(refuse("", "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"))
	case toolsRequired:
		g.refuseLate(refuse("", "tool_choice=\"required\" requires --tool-call-parser to be set"))
	case toolsNamed:
		g.refuseLate(refuse("", "tool_choice=function %s requires --tool-call-parser to be set", strconv.Quote(g.choice.name)))
	}
}

// A call that the model makes up.
type call struct{ id, name, arguments string }

// Bounds of what the model makes up.
const (
	callsMax       = 3  // calls in a reply
	thoughtMin     = 8  // tokens of a thought
	thoughtMax     = 96 // likewise
	callsOneIn     = 2  // of replies that may call, one in so many does
	saysFirstOneIn = 3  // of replies that call as they like, one in so many says something first
)

// planCalls makes the calls of a reply; none if it makes none.
func (g *generation) planCalls(seed uint64) []call {
	if len(g.tools) == 0 || g.choice.mode == toolsNone {
		return nil
	}
	r := mix(seed ^ 0x746f6f6c)
	if g.choice.mode == toolsAuto && (r%callsOneIn != 0 || g.format != nil) {
		return nil
	}
	n := 1
	if g.parallel && g.choice.mode != toolsNamed {
		n = 1 + int(r>>8%callsMax)
	}
	calls := make([]call, n)
	for i := range calls {
		r := mix(seed + uint64(i)<<32)
		t := &g.tools[r%uint64(len(g.tools))]
		if g.choice.mode == toolsNamed {
			t = &g.tools[slices.IndexFunc(g.tools, func(t tool) bool { return t.name == g.choice.name })]
		}
		calls[i] = call{
			id:        fmt.Sprintf("chatcmpl-tool-%016x", r),
			name:      t.name,
			arguments: inventArguments(t.parameters, r),
		}
	}
	return calls
}
