package vllmapi

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

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
	if v, ok := booleanWord(strings.Trim(string(raw), `"`)); ok {
		return v
	}
	if raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
		f.fail("bool_parsing", name, "Input should be a valid boolean, unable to interpret input")
	} else {
		f.fail("bool_type", name, "Input should be a valid boolean")
	}
	return absent
}

// booleanWord is what pydantic takes for yes and no.
func booleanWord(word string) (value, ok bool) {
	switch strings.ToLower(word) {
	case "true", "1", "1.0", "on", "t", "y", "yes":
		return true, true
	case "false", "0", "0.0", "off", "f", "n", "no":
		return false, true
	}
	return false, false
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
	kind, msg := lacksInteger(raw)
	f.fail(kind, name, msg)
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
	switch {
	case s != "" && s != "-" && isWhole(json.RawMessage(s)):
		// Python's have no end. This one is beyond any limit.
		return int64(max(min(v, 1<<62), -1<<62)), true
	case err != nil || v != math.Trunc(v) || math.Abs(v) > 1<<53:
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
