package vllmapi

import (
	"encoding/json"
	"strings"
)

// appendCalls adds the tool calls of an assistant's message.
func appendCalls(m *form, tokens []token) []token {
	raw, given := m.get("tool_calls")
	if !given {
		return tokens
	}
	calls, ok := scanList(raw)
	if !ok {
		noCall(m, 0, raw)
		return tokens
	}
	for i, raw := range calls {
		c := m.inside("", raw)
		var function *form
		if c != nil {
			function, _ = c.sub("function")
		}
		if function == nil || !function.isCall() || !c.has("id") {
			noCall(m, i, raw)
			return tokens
		}
		id, _ := c.text("id")
		name, _ := function.text("name")
		arguments, _ := function.text("arguments")
		tokens = appendCall(tokens, id, name, arguments)
		c.adopt(function.err)
		m.adopt(c.err)
	}
	return tokens
}

// isCall tells whether a function has a name and arguments.
func (f *form) isCall() bool {
	name, _ := f.get("name")
	arguments, _ := f.get("arguments")
	return len(name) > 0 && name[0] == '"' && len(arguments) > 0 && arguments[0] == '"'
}

// noCall notes what the i-th of a message's calls lacks to be one of the two
// kinds. vLLM looks at calls late, and tells their place in the list alone; that
// arguments are meant, it leaves out.
func noCall(m *form, i int, raw json.RawMessage) {
	var notes []invalid
	for _, kind := range []struct{ name, inner, word string }{
		{"ChatCompletionMessageFunctionToolCallParam", "function", "function"},
		{"ChatCompletionMessageCustomToolCallParam", "custom", "custom"},
	} {
		loc := item("body", i) + "." + kind.name
		note := func(what, name, msg string, raw json.RawMessage) {
			notes = append(notes, invalid{kind: what, loc: loc + name, msg: msg, input: shownInput(raw)})
		}
		c := m.inside(loc, raw)
		if c == nil {
			note("dict_type", "", "Input should be a valid dictionary", raw)
			continue
		}
		if !c.has("id") {
			note("missing", ".id", "Field required", raw)
		}
		switch inner, given := c.get(kind.inner); {
		case !given:
			note("missing", "."+kind.inner, "Field required", raw)
		case kind.inner == "function":
			function := m.inside(loc, inner)
			if function == nil {
				note("dict_type", ".function", "Input should be a valid dictionary", inner)
				break
			}
			for _, name := range []string{"arguments", "name"} {
				at := ".function" + strings.TrimPrefix("."+name, ".arguments")
				switch value, given := function.get(name); {
				case !given:
					note("missing", at, "Field required", inner)
				case value[0] != '"':
					note(noText.kind, at, noText.msg, value)
				}
			}
		}
		if word, _ := c.get("type"); plainWord(word) != kind.word {
			note("literal_error", ".type", "Input should be '"+kind.word+"'", word)
		}
	}
	if m.err == nil {
		*m.notes = append(*m.notes, notes...)
	}
}
