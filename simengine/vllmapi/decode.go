package vllmapi

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// Python's parser takes some that Go's refuses: a byte order mark, UTF-16
// behind one, NaN and Infinity.

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
