package vllmapi

import (
	"encoding/json"
	"slices"
)

// A response repeats parts of its request: as the protocol's objects, with all
// their members, and null for what wasn't given.

// Members of those objects, in order.
var (
	echoedReasoning = []string{"context", "effort", "generate_summary", "mode", "summary"}
	echoedText      = []string{"format", "verbosity"}
	echoedTools     = map[string][]string{
		"function":   {"name", "parameters", "strict", "type", "allowed_callers", "async", "defer_loading", "description", "output_schema"},
		"web_search": {"type", "external_web_access", "filters", "search_context_size", "user_location"},
		"mcp": {"server_label", "type", "allowed_callers", "allowed_tools", "authorization", "connector_id", "defer_loading", "headers",
			"require_approval", "server_description", "server_url", "tunnel_id"},
	}
	echoedFormats = map[string][]string{"json_schema": {"name", "schema", "type", "description", "strict"}}
	echoedChoices = map[string][]string{"function": {"name", "type"}, "custom": {"name", "type"}, "allowed_tools": {"mode", "tools", "type"}}
)

// echoObject writes an object's members in order, then those that have no place
// in it. inner writes a value; nil writes it as it is.
func echoObject(raw json.RawMessage, order []string, inner func(name string, raw json.RawMessage) json.RawMessage) json.RawMessage {
	members, ok := scanObject(raw)
	if !ok {
		return raw
	}
	b := []byte{'{'}
	add := func(name string, value json.RawMessage) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		if inner != nil {
			value = inner(name, value)
		}
		b = append(append(appendString(b, name), ':'), value...)
	}
	for _, name := range order {
		value := json.RawMessage("null")
		for _, m := range members {
			if m.name == name {
				value = m.raw
			}
		}
		add(name, value)
	}
	for _, m := range members {
		if !slices.Contains(order, m.name) {
			add(m.name, m.raw)
		}
	}
	return append(b, '}')
}

// echoKind is echoObject for one of several kinds, which its type tells.
func echoKind(raw json.RawMessage, kinds map[string][]string) json.RawMessage {
	members, _ := scanObject(raw)
	for _, m := range members {
		if order := kinds[plainWord(m.raw)]; m.name == "type" && order != nil {
			return echoObject(raw, order, nil)
		}
	}
	return raw
}

// echo is what a response repeats of a member of its request.
func echo(name string, raw json.RawMessage) json.RawMessage {
	switch name {
	case "reasoning":
		return echoObject(raw, echoedReasoning, nil)
	case "text":
		return echoObject(raw, echoedText, func(name string, raw json.RawMessage) json.RawMessage {
			if name == "format" {
				return echoKind(raw, echoedFormats)
			}
			return raw
		})
	case "tool_choice":
		return echoKind(raw, echoedChoices)
	case "tools":
		items, _ := scanList(raw)
		b := []byte{'['}
		for i, raw := range items {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, echoKind(raw, echoedTools)...)
		}
		return append(b, ']')
	}
	return raw
}
