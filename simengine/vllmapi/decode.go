package vllmapi

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// Python's parser takes some that Go's refuses: a byte order mark, UTF-16 and
// UTF-32, NaN and Infinity.

// encoding is one of those that JSON may come in.
type encoding struct {
	order binary.ByteOrder
	wide  bool // UTF-32
}

// encodingOf tells the encoding of a body by its mark or by where its first bytes
// are 0, and the length of the mark; nil is UTF-8.
func encodingOf(b []byte) (*encoding, int) {
	zero := func(i int) bool { return i < len(b) && b[i] == 0 }
	switch {
	case bytes.HasPrefix(b, []byte("\xff\xfe\x00\x00")):
		return &encoding{binary.LittleEndian, true}, 4
	case bytes.HasPrefix(b, []byte("\x00\x00\xfe\xff")):
		return &encoding{binary.BigEndian, true}, 4
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		return &encoding{binary.LittleEndian, false}, 2
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		return &encoding{binary.BigEndian, false}, 2
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return nil, 3
	case len(b) < 4 && len(b) != 2:
		return nil, 0
	case zero(0):
		return &encoding{binary.BigEndian, zero(1)}, 0
	case zero(1):
		return &encoding{binary.LittleEndian, zero(2) && zero(3)}, 0
	}
	return nil, 0
}

// toUTF8 decodes a body; false if it isn't what it seems to be.
func toUTF8(body []byte) ([]byte, bool) {
	e, mark := encodingOf(body)
	body = body[mark:]
	if e == nil {
		return body, utf8.Valid(body)
	}
	if e.wide {
		return e.utf32(body)
	}
	if len(body)%2 != 0 {
		return nil, false
	}
	units := make([]uint16, 0, len(body)/2)
	for i := 0; i < len(body); i += 2 {
		units = append(units, e.order.Uint16(body[i:]))
	}
	return []byte(string(utf16.Decode(units))), true
}

func (e *encoding) utf32(body []byte) ([]byte, bool) {
	if len(body)%4 != 0 {
		return nil, false
	}
	out := make([]byte, 0, len(body)/4)
	for i := 0; i < len(body); i += 4 {
		r := e.order.Uint32(body[i:])
		if r > utf8.MaxRune || !utf8.ValidRune(rune(r)) {
			return nil, false
		}
		out = utf8.AppendRune(out, rune(r))
	}
	return out, true
}

// Bounds of Python's parser, beyond which it gives up without saying where.
const (
	depthMax  = 1400 // of values in each other; it gave up between 1200 and 1500
	digitsMax = 4300 // of a whole number
)

// beyondPython tells whether JSON that is valid is too much for Python's parser.
func beyondPython(body []byte) bool {
	depth, digits := 0, 0
	for i := 0; i < len(body); i++ {
		c := body[i]
		if c >= '0' && c <= '9' {
			digits++
			continue
		}
		// A fraction or an exponent makes it a float, which may be long.
		if digits > digitsMax && c != '.' && c|0x20 != 'e' {
			return true
		}
		if digits > 0 && (c == '.' || c|0x20 == 'e') {
			for i+1 < len(body) && bytes.IndexByte([]byte("0123456789+-eE"), body[i+1]) >= 0 {
				i++
			}
		}
		digits = 0
		switch c {
		case '"':
			i = skipString(body, i) - 1
		case '{', '[':
			if depth++; depth > depthMax {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return digits > digitsMax
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
