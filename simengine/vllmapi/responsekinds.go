package vllmapi

import (
	"encoding/json"
	"strings"
)

// protocolKind is one of the kinds that an object may be: what it must have, and
// the words of its type.
type protocolKind struct {
	name    string
	members []string // in the order of the protocol
	types   []string
}

var choiceKinds = []protocolKind{
	{"ToolChoiceAllowed", []string{"mode", "tools", "type"}, []string{"allowed_tools"}},
	{"ToolChoiceTypes", []string{"type"}, []string{"file_search", "web_search_preview", "computer", "computer_use_preview", "computer_use",
		"web_search_preview_2025_03_11", "image_generation", "code_interpreter"}},
	{"ToolChoiceFunction", []string{"name", "type"}, []string{"function"}},
	{"ToolChoiceMcp", []string{"server_label", "type"}, []string{"mcp"}},
	{"ToolChoiceCustom", []string{"name", "type"}, []string{"custom"}},
	{"ToolChoiceSpecificProgrammaticToolCallingParam", []string{"type"}, []string{"programmatic_tool_calling"}},
	{"ToolChoiceApplyPatch", []string{"type"}, []string{"apply_patch"}},
	{"ToolChoiceShell", []string{"type"}, []string{"shell"}},
}

var formatKinds = []protocolKind{
	{"ResponseFormatText", []string{"type"}, []string{"text"}},
	{"ResponseFormatTextJSONSchemaConfig", []string{"name", "schema", "type"}, []string{"json_schema"}},
	{"ResponseFormatJSONObject", []string{"type"}, []string{"json_object"}},
}

// kindOf tells the type of an object that is one of the kinds; if it is none, it
// notes what it lacks to be each of them.
func (f *form) kindOf(loc string, raw json.RawMessage, kinds []protocolKind) (kind string, ok bool) {
	var notes []invalid
	for i := range kinds {
		lacks := kinds[i].lacks(loc+"."+kinds[i].name, raw)
		if len(lacks) == 0 {
			members, _ := scanObject(raw)
			return typeOf(members), true
		}
		notes = append(notes, lacks...)
	}
	if f.err == nil {
		*f.notes = append(*f.notes, notes...)
	}
	return "", false
}

func typeOf(members []member) (kind string) {
	for _, m := range members {
		if m.name == "type" {
			kind = plainWord(m.raw)
		}
	}
	return kind
}

func (k *protocolKind) lacks(loc string, raw json.RawMessage) (notes []invalid) {
	members, ok := scanObject(raw)
	if !ok {
		return []invalid{{kind: "model_attributes_type", loc: loc, msg: noModel, input: shownInput(raw)}}
	}
	for _, name := range k.members {
		var value json.RawMessage
		for _, m := range members {
			if m.name == name {
				value = m.raw
			}
		}
		note := func(kind, msg string, raw json.RawMessage) {
			notes = append(notes, invalid{kind: kind, loc: loc + "." + name, msg: msg, input: shownInput(raw)})
		}
		switch {
		case value == nil:
			note("missing", "Field required", raw)
		case name == "type" && !strings.Contains(orList(k.types), "'"+plainWord(value)+"'"):
			note("literal_error", "Input should be "+orList(k.types), value)
		case name == "schema" && value[0] != '{':
			note("dict_type", "Input should be a valid dictionary", value)
		}
	}
	return notes
}
