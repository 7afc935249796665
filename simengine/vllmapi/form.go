package vllmapi

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
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
	f.raw = body
	f.members, ok = scanObject(body)
	switch {
	case ok:
	case len(body) == 0 || string(body[skipSpace(body, 0):min(len(body), skipSpace(body, 0)+4)]) == "null":
		f.invalid("missing", f.loc, "Field required", nil)
	default:
		f.invalid("model_attributes_type", f.loc, "Input should be a valid dictionary or object to extract fields from", body[skipSpace(body, 0):])
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

// within is the form of an object inside of f; nil if raw is none. Its error
// must be taken over.
func (f *form) within(loc string, raw json.RawMessage) *form {
	members, ok := scanObject(raw)
	if !ok {
		f.invalid("dict_type", loc, "Input should be a valid dictionary", raw)
		return nil
	}
	return &form{loc: loc, raw: raw, members: members, notes: f.notes}
}

// sub reads a member that is an object.
func (f *form) sub(name string) (*form, bool) {
	raw, ok := f.get(name)
	if !ok {
		return nil, false
	}
	s := f.within(f.at(name), raw)
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

// adopt takes over the error of a form within this one.
func (f *form) adopt(err *apiError) {
	if f.err == nil {
		f.err = err
	}
}

func (f *form) text(name string) (string, bool) {
	raw, ok := f.get(name)
	if !ok {
		return "", false
	}
	if raw[0] != '"' {
		f.fail("string_type", name, "Input should be a valid string")
		return "", false
	}
	return unquote(raw), true
}

// need is text of a member that must be there.
func (f *form) need(name string) string {
	if !f.has(name) {
		f.missing(name)
	}
	s, _ := f.text(name)
	return s
}

func (f *form) list(name string) ([]json.RawMessage, bool) {
	raw, ok := f.get(name)
	if !ok {
		return nil, false
	}
	items, ok := scanList(raw)
	if !ok {
		f.fail("list_type", name, "Input should be a valid list")
	}
	return items, ok
}

func (f *form) boolean(name string, absent bool) bool {
	raw, ok := f.get(name)
	if !ok {
		return absent
	}
	switch strings.ToLower(strings.Trim(string(raw), `"`)) {
	case "true", "1", "1.0", "on", "t", "y", "yes":
		return true
	case "false", "0", "0.0", "off", "f", "n", "no":
		return false
	}
	if raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
		f.fail("bool_parsing", name, "Input should be a valid boolean, unable to interpret input")
	} else {
		f.fail("bool_type", name, "Input should be a valid boolean")
	}
	return absent
}

// integer reads a whole number, written as 5, 5.0, "5" or true.
func (f *form) integer(name string) (int64, bool) {
	raw, ok := f.get(name)
	if !ok {
		return 0, false
	}
	v, ok := wholeNumber(raw)
	if ok {
		return v, true
	}
	switch raw[0] {
	case '"':
		f.fail("int_parsing", name, "Input should be a valid integer, unable to parse string as an integer")
	case '{', '[':
		f.fail("int_type", name, "Input should be a valid integer")
	default:
		f.fail("int_from_float", name, "Input should be a valid integer, got a number with a fractional part")
	}
	return 0, false
}

func wholeNumber(raw json.RawMessage) (int64, bool) {
	s := strings.Trim(string(raw), `"`)
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return v, true
	}
	switch string(raw) {
	case "true":
		return 1, true
	case "false":
		return 0, true
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v != math.Trunc(v) || math.Abs(v) > 1<<53 {
		return 0, false
	}
	return int64(v), true
}

// count reads a whole number and brings it into int's and this package's
// range: what is larger than any limit stays larger.
func (f *form) count(name string, absent int) int {
	v, ok := f.integer(name)
	if !ok {
		return absent
	}
	return int(min(max(v, -1<<40), 1<<40))
}

// number reads a number, which may be NaN or infinite.
func (f *form) number(name string, absent float64) float64 {
	raw, ok := f.get(name)
	if !ok {
		return absent
	}
	switch string(raw) {
	case "true":
		return 1
	case "false":
		return 0
	}
	v, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	switch {
	case err == nil || errors.Is(err, strconv.ErrRange):
		return v
	case raw[0] == '"':
		f.fail("float_parsing", name, "Input should be a valid number, unable to parse string as a number")
	default:
		f.fail("float_type", name, "Input should be a valid number")
	}
	return absent
}
