package vllmapi

import "encoding/json"

// A message may be one of several kinds; pydantic tells of one that is none of
// them what it lacks to be each.

// messageKind is one of them, with its members in the order of the protocol.
type messageKind struct {
	name    string
	members []messageMember
}

type messageMember struct {
	name     string
	role     string // that it must be; empty if any
	lists    string // the note of what is no list; empty if it may be none
	optional bool
	null     bool // may be null
}

// Notes of what is neither a text nor a list.
const iterable, list = "iterable", "list"

var (
	nameMember   = messageMember{name: "name", optional: true}
	messageKinds = []messageKind{
		{"ChatCompletionDeveloperMessageParam", []messageMember{{name: "content", lists: iterable}, {name: "role", role: "developer"}, nameMember}},
		{"ChatCompletionSystemMessageParam", []messageMember{{name: "content", lists: iterable}, {name: "role", role: "system"}, nameMember}},
		{"ChatCompletionUserMessageParam", []messageMember{{name: "content", lists: iterable}, {name: "role", role: "user"}, nameMember}},
		{"ChatCompletionAssistantMessageParam", []messageMember{{name: "role", role: "assistant"}, {name: "content", lists: iterable, optional: true, null: true}, nameMember}},
		{"ChatCompletionToolMessageParam", []messageMember{{name: "content", lists: iterable}, {name: "role", role: "tool"}, {name: "tool_call_id"}}},
		{"ChatCompletionFunctionMessageParam", []messageMember{{name: "content", optional: true, null: true}, {name: "name"}, {name: "role", role: "function"}}},
		{"CustomChatCompletionMessageParam", []messageMember{{name: "role"}, {name: "content", lists: list, optional: true}, nameMember,
			{name: "tool_call_id", optional: true, null: true}}},
		{"Message", []messageMember{{name: "author"}, {name: "recipient"}}},
	}
)

// readMessageOf is a message of any kind; nil if it is of none.
func readMessageOf(f *form, loc string, raw json.RawMessage) *form {
	m := f.inside(loc, raw)
	if m == nil {
		for _, k := range messageKinds {
			kind, msg := "dict_type", "Input should be a valid dictionary"
			if k.name == "Message" {
				kind, msg = "model_attributes_type", noModel
			}
			f.invalid(kind, loc+"."+k.name, msg, raw)
		}
		return nil
	}
	var notes []invalid
	for _, k := range messageKinds {
		lacks := k.lacks(m)
		if len(lacks) == 0 {
			return m
		}
		notes = append(notes, lacks...)
	}
	if f.err == nil {
		*f.notes = append(*f.notes, notes...)
	}
	return nil
}

// lacks is what a message lacks to be of a kind.
func (k *messageKind) lacks(m *form) (notes []invalid) {
	for _, member := range k.members {
		raw, given := m.raw, false
		for _, has := range m.members { // the last of equal names counts
			if has.name == member.name {
				raw, given = has.raw, true
			}
		}
		note := func(kind, msg string) {
			notes = append(notes, invalid{kind: kind, loc: m.loc + "." + k.name + "." + member.name, msg: msg, input: shownInput(raw)})
		}
		isText := raw[0] == '"'
		switch {
		case !given && member.optional:
		case !given:
			note("missing", "Field required")
		case string(raw) == "null" && member.null:
		case member.role != "":
			if !isText || unquote(raw) != member.role {
				note("literal_error", "Input should be '"+member.role+"'")
			}
		case isText || raw[0] == '[' && member.lists != "":
		default:
			note(noText.kind, noText.msg)
			switch member.lists {
			case iterable:
				note("iterable_type", "Input should be iterable")
			case list:
				note(noList.kind, noList.msg)
			}
		}
	}
	return notes
}
