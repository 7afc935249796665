package vllmapi

import (
	"bytes"
	"unicode/utf8"
)

// pythonJSONError is what Python's parser says of a text that is no JSON, and
// where, in characters. It is empty if there is nothing wrong, or if the text is
// nested so deep that Python gives up without a word.
func pythonJSONError(body []byte) (msg string, at int) {
	p := &pyParser{b: body}
	p.space()
	p.value(0)
	if p.msg == "" && !p.deep {
		if p.space(); p.i < len(body) {
			p.fail("Extra data", p.i)
		}
	}
	return p.msg, utf8.RuneCount(body[:p.at])
}

type pyParser struct {
	b    []byte
	i    int
	msg  string
	at   int
	deep bool
}

func (p *pyParser) fail(msg string, at int) bool {
	if p.msg == "" {
		p.msg, p.at = msg, at
	}
	return false
}

func (p *pyParser) space() { p.i = skipSpace(p.b, p.i) }

// next is the byte to read, 0 at the end.
func (p *pyParser) next() byte {
	if p.i < len(p.b) {
		return p.b[p.i]
	}
	return 0
}

// value reads a value and says whether there was one.
func (p *pyParser) value(depth int) bool {
	if depth > depthMax {
		p.deep = true
		return false
	}
	switch p.next() {
	case '"':
		return p.text()
	case '{':
		return p.object(depth)
	case '[':
		return p.list(depth)
	}
	for _, word := range []string{"null", "true", "false", "NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(p.b[p.i:], []byte(word)) {
			p.i += len(word)
			return true
		}
	}
	return p.number()
}

func (p *pyParser) object(depth int) bool {
	p.i++
	if p.space(); p.next() == '}' {
		p.i++
		return true
	}
	for {
		if p.next() != '"' {
			return p.fail("Expecting property name enclosed in double quotes", p.i)
		}
		if !p.text() {
			return false
		}
		if p.space(); p.next() != ':' {
			return p.fail("Expecting ':' delimiter", p.i)
		}
		p.i++
		if p.space(); !p.value(depth + 1) {
			return false
		}
		if end, ok := p.separator('}'); end || !ok {
			return ok
		}
	}
}

func (p *pyParser) list(depth int) bool {
	p.i++
	if p.space(); p.next() == ']' {
		p.i++
		return true
	}
	for p.value(depth + 1) {
		if end, ok := p.separator(']'); end || !ok {
			return ok
		}
	}
	return false
}

// separator reads what follows a member or an item.
func (p *pyParser) separator(closing byte) (end, ok bool) {
	p.space()
	switch p.next() {
	case closing:
		p.i++
		return true, true
	case ',':
		p.i++
		p.space()
		return false, true
	}
	return false, p.fail("Expecting ',' delimiter", p.i)
}

func (p *pyParser) text() bool {
	begin := p.i
	for p.i++; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; {
		case c == '"':
			p.i++
			return true
		case c < ' ':
			return p.fail("Invalid control character at", p.i)
		case c == '\\':
			p.i++
			if p.i == len(p.b) {
				return p.fail("Unterminated string starting at", begin)
			}
			if p.b[p.i] == 'u' {
				if p.i+5 > len(p.b) || !isHex(p.b[p.i+1:p.i+5]) {
					return p.fail(`Invalid \uXXXX escape`, p.i)
				}
				p.i += 4
			} else if !bytes.ContainsRune([]byte(`"\/bfnrt`), rune(p.b[p.i])) {
				return p.fail(`Invalid \escape`, p.i-1)
			}
		}
	}
	return p.fail("Unterminated string starting at", begin)
}

func isHex(b []byte) bool {
	for _, c := range b {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return true
}

// number reads as much of a number as there is.
func (p *pyParser) number() bool {
	i := p.i
	if i < len(p.b) && p.b[i] == '-' {
		i++
	}
	digits := func(i int) int {
		for i < len(p.b) && p.b[i] >= '0' && p.b[i] <= '9' {
			i++
		}
		return i
	}
	end := digits(i)
	if end == i {
		return p.fail("Expecting value", p.i)
	}
	if p.b[i] == '0' {
		end = i + 1
	}
	if end < len(p.b) && p.b[end] == '.' {
		if fraction := digits(end + 1); fraction > end+1 {
			end = fraction
		}
	}
	if end < len(p.b) && p.b[end]|0x20 == 'e' {
		from := end + 1
		if from < len(p.b) && (p.b[from] == '+' || p.b[from] == '-') {
			from++
		}
		if exponent := digits(from); exponent > from {
			end = exponent
		}
	}
	p.i = end
	return true
}
