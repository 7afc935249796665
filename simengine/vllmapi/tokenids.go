package vllmapi

import (
	"encoding/json"
	"strconv"
	"strings"
)

// tokenIDs reads a list of token ids: a vocabulary's, and those that /tokenize
// gives. Of others it returns the one that vLLM tells: the least if that is
// negative, else the largest. What is no whole number is noted.
func tokenIDs(f *form, name string, ids []json.RawMessage) (tokens []token, foreign string) {
	tokens = make([]token, 0, len(ids))
	for i, raw := range ids {
		id := string(raw)
		if !isWhole(raw) {
			f.invalid("int_type", item(f.at(name), i), "Input should be a valid integer", raw)
			return nil, ""
		}
		n, err := strconv.ParseUint(strings.Replace(id, "-0", "0", 1), 10, 64)
		if t := token(n); err == nil && t.valid() {
			tokens = append(tokens, t)
		} else if foreign == "" || further(id, foreign) {
			foreign = id
		}
	}
	return tokens, foreign
}

// isWhole tells whether a value is written as a whole number, of any length.
func isWhole(raw json.RawMessage) bool {
	return strings.Trim(strings.TrimPrefix(string(raw), "-"), "0123456789") == ""
}

// further tells whether the whole number a lies further out than b: below it if
// it is negative, above it if neither is.
func further(a, b string) bool {
	x, below := strings.CutPrefix(a, "-")
	y, other := strings.CutPrefix(b, "-")
	if below != other {
		return below
	}
	return len(x) > len(y) || len(x) == len(y) && x > y
}

// readTokens reads the token ids of a prompt.
func readTokens(f *form, name string, ids []json.RawMessage) []token {
	tokens, foreign := tokenIDs(f, name, ids)
	if foreign != "" {
		f.refuse("", "Token id %s is out of vocabulary", shownInput(json.RawMessage(foreign)))
		return nil
	}
	return tokens
}

// isPrompt tells whether a value is one of the four things that a completion may
// have as prompt: token ids, lists of them, a text or texts. If not it notes what
// it lacks to be each of them, as pydantic does.
func isPrompt(f *form, name string, raw json.RawMessage) bool {
	if raw[0] == '"' {
		return true
	}
	items, list := scanList(raw)
	var kinds [4][]invalid
	lack := func(kind int, what, loc, msg string, raw json.RawMessage) {
		kinds[kind] = append(kinds[kind], invalid{kind: what, loc: loc, msg: msg, input: shownInput(raw)})
	}
	number := func(kind int, loc string, raw json.RawMessage) {
		if what, msg := lacksToken(raw); what != "" {
			lack(kind, what, loc, msg, raw)
		}
	}
	const ids, lists, text, texts = 0, 1, 2, 3
	at := f.at(name)
	lack(text, "string_type", at, "Input should be a valid string", raw)
	if !list {
		for _, kind := range []int{ids, lists, texts} {
			lack(kind, "list_type", at, "Input should be a valid list", raw)
		}
	}
	for i, raw := range items {
		number(ids, item(at, i), raw)
		if inner, ok := scanList(raw); ok {
			for j, raw := range inner {
				number(lists, item(item(at, i), j), raw)
			}
		} else {
			lack(lists, "list_type", item(at, i), "Input should be a valid list", raw)
		}
		if raw[0] != '"' {
			lack(texts, "string_type", item(at, i), "Input should be a valid string", raw)
		}
	}
	for _, k := range kinds {
		if len(k) == 0 {
			return true
		}
	}
	if f.err == nil {
		for _, k := range kinds {
			*f.notes = append(*f.notes, k...)
		}
	}
	return false
}

// lacksToken is what pydantic says of a value that is no token id.
func lacksToken(raw json.RawMessage) (kind, msg string) {
	switch {
	case isWhole(raw) && (raw[0] != '-' || string(raw) == "-0"):
	case isWhole(raw):
		return "greater_than_equal", "Input should be greater than or equal to 0"
	case raw[0] == '"':
		return "int_parsing", "Input should be a valid integer, unable to parse string as an integer"
	case raw[0] >= '0' && raw[0] <= '9' || raw[0] == '-':
		return "int_from_float", "Input should be a valid integer, got a number with a fractional part"
	default:
		return "int_type", "Input should be a valid integer"
	}
	return "", ""
}
