package prompt

import "bytes"

// span is where a value stands in the body. The zero span is an absent value:
// the first byte of a body is no value of its object. It has four members, so
// that it goes by registers.
type span struct {
	from, to int32
	mark     int32 // the first landmark that doesn't begin before it
	state
}

// state says how a value stands in the body.
type state uint8

const (
	isCut   state = 1 << iota // the body's end cuts it off
	isClean                   // canonical as it stands
)

func (s state) cut() bool   { return s&isCut != 0 }
func (s state) clean() bool { return s&isClean != 0 }

// lexer walks raw JSON that was surveyed. It trusts nothing: every method takes
// any index and returns one within the body. That a body is broken is sticky
// and ends all walks. A walk that reaches the end of the body has come to where
// it was cut: the survey saw that a whole one ends with a bracket.
type lexer struct {
	body     []byte
	complete bool
	broken   bool
	marks    []landmark
	name     [maxName]byte
	keys     [maxFields]span // of the fields that note has found, while it looks
	// Of a survey:
	depth int                 // of brackets
	dirty int                 // the last byte that keeps what it is in from being canonical
	stack [maxDepth + 1]int32 // by depth: twice the landmark, plus 1 for a brace
}

func (l *lexer) reset(body []byte, complete bool) {
	if len(body) > maxBytes {
		body, complete = body[:maxBytes], false
	}
	// The capacity of a part of it tells emit how much of the body follows.
	l.body, l.complete, l.broken = body[:len(body):len(body)], complete, false
}

// fail says that the body can't go on at i: cut off there, or wrong.
func (l *lexer) fail(i int) {
	if i < len(l.body) || l.complete {
		l.broken = true
	}
}

// at is the byte at i, 0 behind the end.
func (l *lexer) at(i int) byte {
	if i < len(l.body) {
		return l.body[i]
	}
	return 0
}

// first is a value's first byte, which tells its type; 0 for an absent value.
func (l *lexer) first(v span) byte {
	if v.to == 0 {
		return 0
	}
	return l.at(int(v.from))
}

// bytes is a value as it stands in the body.
func (l *lexer) bytes(v span) []byte { return l.body[v.from:v.to] }

func (l *lexer) space(i int) int {
	if i < len(l.body) && l.body[i] > ' ' {
		return i
	}
	return l.spaces(i)
}

// token is where the next byte that is no white space stands, and that byte; 0
// behind the end.
func (l *lexer) token(i int) (int, byte) {
	if i < len(l.body) && l.body[i] > ' ' {
		return i, l.body[i]
	}
	return l.tokenBehind(i)
}

func (l *lexer) tokenBehind(i int) (int, byte) {
	i = l.spaces(i)
	return i, l.at(i)
}

func (l *lexer) spaces(i int) int {
	for i < len(l.body) {
		switch l.body[i] {
		case ' ', '\n', '\t', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// marked reports whether the value at i is landmark m.
func (l *lexer) marked(i int, m int32) bool {
	return int(m) < len(l.marks) && int(l.marks[m].from) == i
}

// valueAt is the span of the value at i, and the first landmark behind it. m is
// the first landmark that doesn't begin before i.
func (l *lexer) valueAt(i int, m int32) (span, int32) {
	if int(m) < len(l.marks) {
		if k := &l.marks[m]; int(k.from) == i {
			return span{k.from, k.to, m, k.state}, k.next
		}
	}
	return l.unmarked(i, m), m
}

// unmarked is the span of a value that is no landmark.
func (l *lexer) unmarked(i int, m int32) span {
	end := -1
	switch l.at(i) {
	case '"':
		end = stringEnd(l.body, i)
	case '{', '[':
		end = l.nestedEnd(i)
	default:
		end = l.scalarEnd(i)
	}
	if end < 0 {
		return span{int32(i), int32(len(l.body)), m, isCut}
	}
	return span{int32(i), int32(end), m, 0}
}

// nestedEnd is the index behind an object or array, -1 if the body's end cuts
// it off. That brackets match is known from the survey.
func (l *lexer) nestedEnd(i int) int {
	depth := 0
	for i < len(l.body) {
		switch l.body[i] {
		case '"':
			if i = stringEnd(l.body, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// scalarEnd accepts what Python accepts, NaN and Infinity included. It is -1
// for what the body's end may have cut off.
func (l *lexer) scalarEnd(i int) int {
	from := i
	numeric := true
	for i < len(l.body) {
		c := l.body[i]
		if c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E' {
			i++
			continue
		}
		if (c|0x20) < 'a' || (c|0x20) > 'z' {
			break
		}
		numeric = false
		i++
	}
	word := l.body[from:i]
	switch {
	case i == len(l.body):
		return -1
	case len(word) == 0:
		l.broken = true
	case numeric:
		l.broken = l.broken || word[0] != '-' && (word[0] < '0' || word[0] > '9')
	default:
		switch string(word) {
		case "true", "false", "null", "NaN", "Infinity", "-Infinity":
		default:
			l.broken = true
		}
	}
	return i
}

// integer reads a whole number from 0 to 1<<31-1, else 0. Python's engines
// refuse fractions, but not 1.0.
func (l *lexer) integer(v span) int {
	word := l.bytes(v)
	if whole, fraction, ok := bytes.Cut(word, []byte{'.'}); ok && len(bytes.Trim(fraction, "0")) == 0 {
		word = whole
	}
	if len(word) == 0 || len(word) > 10 || v.cut() {
		return 0
	}
	n := int64(0)
	for _, c := range word {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	if n > 1<<31-1 {
		return 0
	}
	return int(n)
}

func (l *lexer) is(v span, word string) bool { return string(l.bytes(v)) == word }

// present reports whether v is there and not null.
func (l *lexer) present(v span) bool { return v.to > 0 && !l.is(v, "null") }

// says reports whether v is there, and neither null nor an empty string.
func (l *lexer) says(v span) bool { return l.present(v) && !l.is(v, `""`) }

// tells reports whether v says something, and isn't an empty object or array. Most
// fields are absent, which is to cost no call.
func (l *lexer) tells(v span) bool { return v.to > 0 && l.filled(v) }

func (l *lexer) filled(v span) bool { return l.says(v) && !l.hollow(v) }

// hollow reports whether v is an object or array without anything in it, which
// shows no more in a prompt than one that isn't there.
func (l *lexer) hollow(v span) bool {
	c := l.first(v)
	return (c == '{' || c == '[') && !v.cut() && l.space(int(v.from)+1) == int(v.to)-1
}

// inside is a string's raw text, without quotes.
func (l *lexer) inside(v span) []byte {
	if v.cut() {
		return l.body[v.from+1 : v.to]
	}
	return l.body[v.from+1 : v.to-1]
}

// unquoted is a string's text: a part of the body, or in scratch if there are
// escapes to undo. It is nil for other values and for a string that is cut.
func (l *lexer) unquoted(v span, scratch *[]byte) []byte {
	if l.first(v) != '"' || v.cut() {
		return nil
	}
	raw := l.inside(v)
	k := bytes.IndexByte(raw, '\\')
	if k < 0 {
		return raw
	}
	out := (*scratch)[:0]
	for ; k >= 0; k = bytes.IndexByte(raw, '\\') {
		out = append(out, raw[:k]...)
		var n int
		if out, n = appendEscape(out, raw[k:]); n == 0 {
			l.broken = true
			return nil
		}
		raw = raw[k+n:]
	}
	*scratch = append(out, raw...)
	return *scratch
}
