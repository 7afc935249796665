package vllmapi

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Ids of a vocabulary's tokens are the tokens. Others have ids of their own, below
// 1<<32, since clients and readers of KV events take no more for a token:
//
//	asciiIDs | bytes-1 (2 bits) | four times 7 bits of text
//	mediaIDs | 24 bits of hash
//
// Only a text that isn't ASCII has the token itself as id, which doesn't fit: its
// bytes don't either. The spaces between are such that a number that somebody
// thinks of, to see it refused, hardly is one of these.
const (
	asciiIDs = 0x80000000
	mediaIDs = 0x7a000000
	maskHash = 0xffffff
)

func isText(c byte) bool { return c >= ' ' && c < 0x7f || c == '\n' || c == '\t' || c == '\r' }

// id is the number by which clients know the token.
func (t token) id() uint64 {
	kind := t.kind()
	if kind == mediaKind {
		return mediaIDs | uint64(t)&maskHash
	}
	if kind < 1 || kind > textBytes {
		return uint64(t)
	}
	id := asciiIDs | uint64(kind-1)<<28
	for i := range kind {
		c := byte(t >> (24 - 8*i))
		if !isText(c) {
			return uint64(t)
		}
		id |= uint64(c) << (21 - 7*i)
	}
	return id
}

// tokenOf is the token of an id, if it is one.
func tokenOf(id uint64) (t token, ok bool) {
	switch t = token(id); {
	case id < vocabulary:
		return t, true
	case id&^maskHash == mediaIDs:
		t = (ownKinds+mediaKind)<<32 | token(id&maskHash)
	case id>>31 == asciiIDs>>31:
		var piece [textBytes]byte
		for i := range piece {
			piece[i] = byte(id>>(21-7*i)) & 0x7f
		}
		t = textToken(string(piece[:1+id>>28&3]))
	}
	return t, t.kind() >= 1 && t.kind() <= mediaKind && t.id() == id
}

// tokenIDs reads a list of token ids: a vocabulary's, and those that /tokenize
// gives. Of others it returns the one that vLLM tells: the least if that is
// negative, else the largest. What is no whole number is noted.
func tokenIDs(f *form, name string, ids []json.RawMessage) (tokens []token, foreign string) {
	tokens = make([]token, 0, len(ids))
	for i, raw := range ids {
		id := string(raw)
		if !isWhole(raw) {
			kind, msg := lacksInteger(raw)
			if kind == "" { // a number in another way of writing is no id
				kind, msg = "int_type", "Input should be a valid integer"
			}
			f.invalid(kind, item(f.at(name), i), msg, raw)
			return nil, ""
		}
		n, err := strconv.ParseUint(strings.Replace(id, "-0", "0", 1), 10, 64)
		if t, ok := tokenOf(n); err == nil && ok {
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
