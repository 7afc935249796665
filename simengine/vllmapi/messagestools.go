package vllmapi

import "encoding/json"

func (g *generation) readAnthropicTools(f *form, c *conversation) {
	items, given := f.list("tools")
	g.readToolItems(f, items, func(t *form) *form {
		if !t.has("input_schema") {
			t.missing("input_schema")
		}
		description, _ := t.get("description")
		parameters, _ := t.get("input_schema")
		name, _ := t.text("name")
		c.addTool(name, description, parameters)
		return t
	})
	if given {
		g.choice.mode = toolsAuto
	}
	choice, ok := f.sub("tool_choice")
	if !ok {
		return
	}
	g.parallel = !choice.boolean("disable_parallel_tool_use", false)
	switch kind := choice.need("type"); kind {
	case "auto":
	case "none":
		g.choice.mode = toolsNone
	case "any":
		g.choice.mode = toolsRequired
	case "tool":
		name, _ := choice.text("name")
		if name == "" {
			f.valueError("tool_choice", "tool_choice.name is required when type is 'tool'")
			return
		}
		g.name(f, name, refuse("", "The tool with name '%s' is not found in the tools list.", name))
	default:
		choice.fail("literal_error", "type", "Input should be 'auto', 'any', 'tool' or 'none'")
	}
	if !given {
		g.choice.mode = toolsNone // there is none to choose
	}
	f.adopt(choice.err)
}

// addTool adds a tool to the prompt in the form that chats have.
func (c *conversation) addTool(name string, description, parameters json.RawMessage) {
	b := appendString([]byte(`{"type":"function","function":{"name":`), name)
	if description != nil {
		b = append(append(b, `,"description":`...), canonical(description)...)
	}
	if parameters != nil {
		b = append(append(b, `,"parameters":`...), canonical(parameters)...)
	}
	b = append(b, `}}`...)
	c.tools = appendText(append(c.tools, tokenTools), string(b))
}
