package prompt

import "bytes"

// maxDepth bounds the nesting of brackets. It is Python's default recursion
// limit, at which the engines' parser used to stop; Go's stops at 10,000.
const maxDepth = 1000

// span is where a value stands in the body. The zero span is an absent value.
type span struct {
	from, to int
	cut      bool // the body's end cuts it off
}

// lexer walks raw JSON. It trusts nothing: every method takes any index and
// returns one within the body. Errors are sticky and end all walks.
type lexer struct {
	body     []byte
	complete bool
	broken   bool
	cut      bool // the body ended inside a value, which only an incomplete one may
	nesting  [maxDepth/64 + 1]uint64
}

func (l *lexer) reset(body []byte, complete bool) {
	l.body, l.complete = body, complete
	l.broken, l.cut = false, false
}

// fail says that the body can't go on at i: cut off there, or wrong.
func (l *lexer) fail(i int) {
	if i >= len(l.body) && !l.complete {
		l.cut = true
		return
	}
	l.broken = true
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
	return l.at(v.from)
}

func (l *lexer) space(i int) int {
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

// valueAt is the span of the value at i. An earlier walk may have met the cut
// already, so whether it cuts this value is found out anew.
func (l *lexer) valueAt(i int) span {
	before := l.cut
	l.cut = false
	v := span{from: i, to: l.skip(i)}
	v.cut = l.cut
	l.cut = before || v.cut
	return v
}

// skip returns the index behind the value at i.
func (l *lexer) skip(i int) int {
	switch l.at(i) {
	case '"':
		return l.skipString(i)
	case '{', '[':
		return l.skipNested(i)
	}
	return l.skipScalar(i)
}

// skipString looks for quotes only: in text they are rarer than backslashes,
// and bytes.IndexByte outruns any loop here. A quote is escaped if an odd
// number of backslashes stands before it.
func (l *lexer) skipString(i int) int {
	from := i + 1
	for j := from; j < len(l.body); j++ {
		k := bytes.IndexByte(l.body[j:], '"')
		if k < 0 {
			break
		}
		j += k
		n := j
		for n > from && l.body[n-1] == '\\' {
			n--
		}
		if (j-n)%2 == 0 {
			return j + 1
		}
	}
	l.fail(len(l.body))
	return len(l.body)
}

// skipNested jumps over an object or array without recursion. One bit for each
// open bracket tells which bracket must close it.
func (l *lexer) skipNested(i int) int {
	const outer = 1 // the request's own object
	depth := 0
	for i < len(l.body) {
		switch c := l.body[i]; c {
		case '"':
			i = l.skipString(i)
			if l.broken || l.cut {
				return len(l.body)
			}
			continue
		case '{', '[':
			if depth++; depth+outer > maxDepth {
				l.broken = true
				return len(l.body)
			}
			bit := uint64(1) << (depth % 64)
			if c == '{' {
				l.nesting[depth/64] |= bit
			} else {
				l.nesting[depth/64] &^= bit
			}
		case '}', ']':
			if brace := l.nesting[depth/64]>>(depth%64)&1 == 1; brace != (c == '}') {
				l.broken = true
				return len(l.body)
			}
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	l.fail(i)
	return i
}

// skipScalar accepts what Python accepts, NaN and Infinity included.
func (l *lexer) skipScalar(i int) int {
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
		l.fail(i) // a whole body ends with a bracket, and a cut number may go on
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

// walk goes through the members of an object or the elements of an array.
type walk struct {
	l       *lexer
	pos     int // behind what was read
	value   span
	key     span // of an object's member, quotes included
	object  bool
	started bool
	scratch [48]byte // longer than any name of interest
}

// enter starts a walk through the object or array at i.
func (l *lexer) enter(i int) walk {
	return walk{l: l, pos: i + 1, object: l.at(i) == '{'}
}

// next goes to the next value. A value that the body's end cuts off is still
// given, as the last.
func (w *walk) next() bool {
	l := w.l
	if l.broken || l.cut && w.pos >= len(l.body) {
		return false
	}
	closing := byte(']')
	if w.object {
		closing = '}'
	}
	i := l.space(w.pos)
	if !w.started && l.at(i) == closing || w.started && l.at(i) != ',' {
		return w.end(i, closing)
	}
	if w.started {
		i = l.space(i + 1)
	}
	w.started = true
	if w.object {
		if i = w.member(i); i < 0 {
			w.pos = len(l.body)
			return false
		}
	}
	if i >= len(l.body) {
		l.fail(i)
		w.pos = i
		return false
	}
	w.value = l.valueAt(i)
	w.pos = w.value.to
	return !l.broken
}

func (w *walk) end(i int, closing byte) bool {
	w.pos = i + 1
	if w.l.at(i) != closing {
		w.l.fail(i)
		w.pos = len(w.l.body)
	}
	return false
}

// member reads a key and its colon, and returns the index of the value.
func (w *walk) member(i int) int {
	l := w.l
	if l.at(i) != '"' {
		l.fail(i)
		return -1
	}
	end := l.skipString(i)
	w.key = span{from: i, to: end}
	i = l.space(end)
	if l.broken || l.at(i) != ':' {
		l.fail(i)
		return -1
	}
	return l.space(i + 1)
}

// name is the current member's key, unescaped; valid until the next one. Keys
// too long to be of interest come as they are.
func (w *walk) name() []byte {
	raw := w.l.body[w.key.from+1 : w.key.to-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	out := w.scratch[:0]
	for len(raw) > 0 && len(out)+4 <= len(w.scratch) {
		if raw[0] != '\\' {
			out = append(out, raw[0])
			raw = raw[1:]
			continue
		}
		n := 0
		if out, n = appendEscape(out, raw); n == 0 {
			return nil
		}
		raw = raw[n:]
	}
	return out
}

// integer reads a whole number from 0 to 1<<31-1, else 0. Python's engines
// refuse fractions.
func (l *lexer) integer(v span) int {
	word := l.body[v.from:v.to]
	if len(word) == 0 || len(word) > 10 || v.cut {
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

func (l *lexer) is(v span, word string) bool { return string(l.body[v.from:v.to]) == word }

// inside is a string's raw text, without quotes.
func (l *lexer) inside(v span) []byte {
	if v.cut {
		return l.body[v.from+1 : v.to]
	}
	return l.body[v.from+1 : v.to-1]
}

// unquoted is a string's text: a part of the body, or in scratch if there are
// escapes to undo. It is nil for other values and for a string that is cut.
func (l *lexer) unquoted(v span, scratch *[]byte) []byte {
	if l.first(v) != '"' || v.cut {
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
