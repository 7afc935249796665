package vllmapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// invalid is an error of pydantic, which checks a body's types before vLLM
// looks at it. Of a body all such errors are told together.
type invalid struct {
	kind, loc, msg string
	input          string // as shown: see shownInput
	cause          string // ctx.error; empty is left out
}

// shownMax is how many errors are told in full.
const shownMax = 10

// together is the answer to a body with such errors, in the order of the
// members in vLLM's protocol.
func together(errors []invalid, order []string) *apiError {
	rank := func(v invalid) int {
		name, _, _ := strings.Cut(strings.TrimPrefix(v.loc, "body."), ".")
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(errors, func(a, b invalid) int { return cmp.Compare(rank(a), rank(b)) })
	label := "errors"
	if len(errors) == 1 {
		label = "error"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d validation %s:", len(errors), label)
	for _, v := range errors[:min(len(errors), shownMax)] {
		fmt.Fprintf(&b, "\n  {'type': %s, 'loc': %s, 'msg': %s, 'input': %s", pyString(v.kind), pyString(v.loc), pyString(v.msg), pyString(v.input))
		if context := v.context(); context != "" {
			b.WriteString(", 'ctx': {" + context + "}")
		}
		b.WriteString("}")
	}
	if more := len(errors) - shownMax; more > 0 {
		fmt.Fprintf(&b, "\n  ...and %d more %s", more, label)
	}
	return &apiError{http.StatusBadRequest, "Bad Request", b.String(), errors[0].loc}
}

// context is what pydantic tells beside the message, in Python's words.
func (v *invalid) context() string {
	after := func(words string) string {
		_, rest, _ := strings.Cut(v.msg, words)
		return rest
	}
	switch v.kind {
	case "json_invalid":
		return "'error': " + pyString(v.cause)
	case "value_error":
		return "'error': ValueError(" + pyString(v.cause) + ")"
	case "string_too_short":
		return "'min_length': 1"
	case "literal_error":
		return "'expected': " + pyString(after("should be "))
	case "greater_than_equal", "less_than_equal":
		bound := after("equal to ")
		if strings.HasSuffix(v.loc, "_penalty") { // a float
			bound += ".0"
		}
		return map[string]string{"greater_than_equal": "'ge': ", "less_than_equal": "'le': "}[v.kind] + bound
	case "too_long":
		most, have, _ := strings.Cut(after("at most "), " items after validation, not ")
		return "'field_type': 'List', 'max_length': " + most + ", 'actual_length': " + have
	}
	return ""
}

// invalidQuery is the answer to a parameter behind a path.
func invalidQuery(kind, name, msg, value string) *apiError {
	return together([]invalid{{kind: kind, loc: "query." + name, msg: msg, input: value}}, nil)
}

// inputMax bounds, in bytes, what an error repeats of a value.
const inputMax = 200

// shownInput is a value as errors repeat it: containers by size only, texts to
// inputMax bytes.
func shownInput(raw json.RawMessage) string {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "None"
	case raw[0] == '"':
		s := unquote(raw)
		if len(s) > inputMax {
			s = strings.ToValidUTF8(s[:inputMax], "") + "...[truncated]"
		}
		return s
	case raw[0] == '{':
		members, _ := scanObject(raw)
		return fmt.Sprintf("<dict of %d items>", len(members))
	case raw[0] == '[':
		items, _ := scanList(raw)
		return fmt.Sprintf("<list of %d items>", len(items))
	case string(raw) == "true":
		return "True"
	case string(raw) == "false":
		return "False"
	}
	return string(raw[:min(len(raw), inputMax)])
}

// pyString is a text in Python's quotes.
func pyString(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b := []byte{quote}
	for _, r := range s {
		switch {
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\\' || r == rune(quote):
			b = append(b, '\\', byte(r))
		case r < ' ' || r == 0x7f:
			b = fmt.Appendf(b, `\x%02x`, r)
		default:
			b = append(b, string(r)...)
		}
	}
	return string(append(b, quote))
}
