package vllmapi

import (
	"encoding/json"
	"slices"
	"strconv"
)

// form reads the members of a JSON object as vLLM's server does: names are
// case sensitive, the last of equal names counts, null is absent, numbers may
// come as strings, and unknown members are ignored. Members of the wrong type
// are noted and read as absent; the first other error stays in err, after which
// all members do.
type form struct {
	loc     string // path of the object, "body" for the whole
	raw     json.RawMessage
	members []member
	err     *apiError
	notes   *[]invalid // shared with the forms within
}

// parseForm reads a body.
func parseForm(body []byte) *form {
	f := &form{loc: "body", notes: new([]invalid)}
	body, ok := toUTF8(body)
	if !ok {
		f.err = unreadable
		return f
	}
	if !json.Valid(body) && len(body) > 0 {
		quoted := quoteNonFinite(body)
		if !json.Valid(quoted) {
			f.noJSON(body)
			return f
		}
		body = quoted
	}
	if len(body) > 0 && beyondPython(body) {
		f.err = unreadable
		return f
	}
	f.raw = body
	f.members, ok = scanObject(body)
	switch {
	case ok:
	case len(body) == 0 || string(body[skipSpace(body, 0):min(len(body), skipSpace(body, 0)+4)]) == "null":
		f.invalid("missing", f.loc, "Field required", nil)
	default:
		f.invalid("model_attributes_type", f.loc, noModel, body[skipSpace(body, 0):])
	}
	return f
}

func (f *form) noJSON(body []byte) {
	cause, at := pythonJSONError(body)
	if cause == "" {
		f.err = unreadable
		return
	}
	*f.notes = append(*f.notes, invalid{"json_invalid", item(f.loc, at), "JSON decode error", "<dict of 0 items>", cause})
}

// invalid notes an error of types at loc, once for each.
func (f *form) invalid(kind, loc, msg string, raw json.RawMessage) {
	if f.err != nil || slices.ContainsFunc(*f.notes, func(v invalid) bool { return v.loc == loc }) {
		return
	}
	*f.notes = append(*f.notes, invalid{kind: kind, loc: loc, msg: msg, input: shownInput(raw)})
}

// failed says whether anything was wrong by now.
func (f *form) failed() bool { return f.err != nil || len(*f.notes) > 0 }

// problem is what was wrong, nil if nothing was. What vLLM refuses by a rule of
// its own comes before wrong types, as there.
func (f *form) problem(order []string) *apiError {
	if f.err == nil && len(*f.notes) > 0 {
		return together(*f.notes, order)
	}
	return f.err
}

// within is the form of an object inside of f that has a protocol of its own; nil
// if raw is none. Its error must be taken over.
func (f *form) within(loc string, raw json.RawMessage) *form {
	s := f.inside(loc, raw)
	if s == nil {
		f.invalid("model_attributes_type", loc, noModel, raw)
	}
	return s
}

const noModel = "Input should be a valid dictionary or object to extract fields from"

// inside is within for who notes himself that there is no object.
func (f *form) inside(loc string, raw json.RawMessage) *form {
	if members, ok := scanObject(raw); ok {
		return &form{loc: loc, raw: raw, members: members, notes: f.notes}
	}
	return nil
}

// sub reads a member that is an object with a protocol of its own.
func (f *form) sub(name string) (*form, bool) {
	raw, ok := f.get(name)
	if !ok {
		return nil, false
	}
	s := f.within(f.at(name), raw)
	return s, s != nil
}

// dict reads a member that is any object.
func (f *form) dict(name string) (*form, bool) {
	raw, ok := f.get(name)
	if !ok {
		return nil, false
	}
	s := f.inside(f.at(name), raw)
	if s == nil {
		f.fail("dict_type", name, "Input should be a valid dictionary")
	}
	return s, s != nil
}

func (f *form) get(name string) (json.RawMessage, bool) {
	if f.err != nil {
		return nil, false
	}
	for i := len(f.members) - 1; i >= 0; i-- {
		if f.members[i].name == name {
			raw := f.members[i].raw
			return raw, string(raw) != "null"
		}
	}
	return nil, false
}

// has is get without the value.
func (f *form) has(name string) bool {
	_, ok := f.get(name)
	return ok
}

func (f *form) at(name string) string { return f.loc + "." + name }

// item is the path of an element of a list.
func item(loc string, i int) string { return loc + "." + strconv.Itoa(i) }

func (f *form) fail(kind, name, msg string) {
	raw, _ := f.get(name)
	f.invalid(kind, f.at(name), msg, raw)
}

// missing notes that a member lacks. pydantic shows the object that lacks it.
func (f *form) missing(name string) { f.invalid("missing", f.at(name), "Field required", f.raw) }

func (f *form) refuse(param, format string, args ...any) {
	if f.err == nil {
		f.err = refuse(param, format, args...)
	}
}

// valueError notes what a check of vLLM's within pydantic says of a member.
func (f *form) valueError(name, msg string) {
	raw, _ := f.get(name)
	f.noteValue(f.at(name), msg, raw)
}

// wholeError is valueError of the form itself.
func (f *form) wholeError(msg string) { f.noteValue(f.loc, msg, f.raw) }

func (f *form) noteValue(loc, msg string, raw json.RawMessage) {
	before := len(*f.notes)
	f.invalid("value_error", loc, "Value error, "+msg, raw)
	if now := *f.notes; len(now) > before {
		now[before].cause = msg
	}
}

// either notes that a member is none of the two things that it may be.
func (f *form) either(name string, raw json.RawMessage, notes ...invalid) {
	if f.err != nil || slices.ContainsFunc(*f.notes, func(v invalid) bool { return v.loc == f.at(name) }) {
		return
	}
	for _, v := range notes {
		v.loc, v.input = f.at(name)+v.loc, shownInput(raw)
		*f.notes = append(*f.notes, v)
	}
}

// What pydantic says of a value that should be one of those.
var (
	noText = invalid{kind: "string_type", msg: "Input should be a valid string"}
	noList = invalid{kind: "list_type", msg: "Input should be a valid list"}
)

// textOrList reads a member that is one or the other; ok is false if it is
// neither or not there.
func (f *form) textOrList(name string) (text string, items []json.RawMessage, ok bool) {
	raw, ok := f.get(name)
	if !ok {
		return "", nil, false
	}
	if raw[0] == '"' {
		return unquote(raw), nil, true
	}
	if items, ok = scanList(raw); !ok {
		f.either(name, raw, noText, noList)
	}
	return "", items, ok
}

// adopt takes over the error of a form within this one.
func (f *form) adopt(err *apiError) {
	if f.err == nil {
		f.err = err
	}
}
