package vllmapi

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// form reads the members of a JSON object as vLLM's server does: names are
// case sensitive, the last of equal names counts, null is absent, numbers may
// come as strings, and unknown members are ignored. The first error stays in
// err, after which members read as absent.
type form struct {
	loc     string
	members map[string]json.RawMessage
	err     *apiError
}

// parseForm reads a body. Python's parser takes some that Go's refuses: a byte
// order mark, UTF-16 behind one, NaN and Infinity.
func parseForm(body []byte) *form {
	body, ok := toUTF8(body)
	if !ok {
		return &form{err: &apiError{400, "Bad Request", "There was an error parsing the body", ""}}
	}
	f := &form{}
	err := json.Unmarshal(body, &f.members)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		err = json.Unmarshal(quoteNonFinite(body), &f.members)
	}
	switch {
	case errors.As(err, &syntax):
		f.err = malformed("json_invalid", strconv.FormatInt(max(0, syntax.Offset-1), 10), "JSON decode error")
	case err != nil:
		f.err = malformed("model_attributes_type", "", "Input should be a valid dictionary or object to extract fields from")
	case f.members == nil: // null
		f.err = malformed("missing", "", "Field required")
	}
	return f
}

// toUTF8 decodes by byte order mark.
func toUTF8(body []byte) ([]byte, bool) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(body, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(body, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
		return body, utf8.Valid(body)
	}
	if len(body)%2 != 0 {
		return nil, false
	}
	units := make([]uint16, 0, len(body)/2)
	for i := 2; i < len(body); i += 2 {
		units = append(units, order.Uint16(body[i:]))
	}
	return []byte(string(utf16.Decode(units))), true
}

// quoteNonFinite puts NaN, Infinity and -Infinity into quotes where they stand
// for a value; form reads numbers from strings too.
func quoteNonFinite(body []byte) []byte {
	var out []byte
	quoted := false
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\' && i+1 < len(body):
			out = append(out, c)
			i++
			c = body[i]
		case !quoted && (c == 'N' || c == 'I' || c == '-'):
			if word := nonFinite(body[i:]); word != "" {
				out = append(append(append(out, '"'), word...), '"')
				i += len(word) - 1
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

func nonFinite(b []byte) string {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(word)) {
			return word
		}
	}
	return ""
}

// sub reads a member that is an object; its error must be taken over.
func (f *form) sub(name string) (*form, bool) {
	raw, ok := f.get(name)
	if !ok {
		return nil, false
	}
	s := &form{loc: f.at(name)}
	if json.Unmarshal(raw, &s.members) != nil {
		f.fail("dict_type", name, "Input should be a valid dictionary")
		return nil, false
	}
	return s, true
}

func (f *form) get(name string) (json.RawMessage, bool) {
	raw, ok := f.members[name]
	if f.err != nil || !ok || string(raw) == "null" {
		return nil, false
	}
	return raw, true
}

func (f *form) at(name string) string {
	if f.loc == "" {
		return "'" + name + "'"
	}
	return f.loc + ", '" + name + "'"
}

func (f *form) fail(kind, name, msg string) {
	if f.err == nil {
		f.err = malformed(kind, f.at(name), msg)
	}
}

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
	var s string
	if json.Unmarshal(raw, &s) != nil {
		f.fail("string_type", name, "Input should be a valid string")
		return "", false
	}
	return s, true
}

func (f *form) list(name string) ([]json.RawMessage, bool) {
	raw, ok := f.get(name)
	if !ok {
		return nil, false
	}
	var l []json.RawMessage
	if json.Unmarshal(raw, &l) != nil {
		f.fail("list_type", name, "Input should be a valid list")
		return nil, false
	}
	return l, true
}

func (f *form) boolean(name string, absent bool) bool {
	raw, ok := f.get(name)
	if !ok {
		return absent
	}
	switch strings.ToLower(strings.Trim(string(raw), `"`)) {
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	f.fail("bool_parsing", name, "Input should be a valid boolean, unable to interpret input")
	return absent
}

// integer reads a whole number, written as 5, 5.0 or "5".
func (f *form) integer(name string) (int64, bool) {
	raw, ok := f.get(name)
	if !ok {
		return 0, false
	}
	v, ok := wholeNumber(raw)
	if !ok {
		f.fail("int_parsing", name, "Input should be a valid integer")
	}
	return v, ok
}

func wholeNumber(raw json.RawMessage) (int64, bool) {
	s := strings.Trim(string(raw), `"`)
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return v, true
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

// number reads a finite number.
func (f *form) number(name string, absent float64) float64 {
	raw, ok := f.get(name)
	if !ok {
		return absent
	}
	v, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil {
		f.fail("float_parsing", name, "Input should be a valid number, unable to parse string as a number")
		return absent
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		f.refuse(name, "%s must be finite.", name)
		return absent
	}
	return v
}
