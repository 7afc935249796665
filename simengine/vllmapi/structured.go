package vllmapi

import (
	"encoding/json"
	"regexp/syntax"
	"strings"
)

// format is the form that a client wants replies in; nil is none. What a grammar
// or a structural tag describes is not made up: such replies are words.
type format struct {
	schema  json.RawMessage // JSON of this schema; with object set, any object
	object  bool
	choices []string
	pattern *syntax.Regexp
}

var formatAny = format{object: true}

// invent makes up a text of the form.
func (f *format) invent(seed uint64) string {
	switch seed = mix(seed ^ 0x666f726d); {
	case f == nil:
		return ""
	case f.object:
		return inventAnyObject(seed)
	case f.schema != nil:
		return string(inventor{f.schema}.value(nil, f.schema, seed, 0))
	case len(f.choices) > 0:
		return f.choices[seed%uint64(len(f.choices))]
	case f.pattern != nil:
		return string(inventPattern(nil, f.pattern, seed))
	}
	return ""
}

// inventAnyObject makes up an object of a few words and numbers.
func inventAnyObject(seed uint64) string {
	b := []byte{'{'}
	for i := range 1 + seed%4 {
		if i > 0 {
			b = append(b, ", "...)
		}
		key := appendWord(nil, seed^0x6b6579, int(i), false)
		b = append(appendString(b, string(key[:len(key)-1])), ": "...)
		kind := []string{`{"type": "string"}`, `{"type": "integer"}`, `{"type": "boolean"}`}[mix(seed+i)%3]
		b = inventor{}.value(b, json.RawMessage(kind), mix(seed^i), 0)
	}
	return string(append(b, '}'))
}

// inventPattern makes up a text that matches, for the expressions that describe
// most texts; of repetitions it makes as few as may be, or one more.
func inventPattern(b []byte, re *syntax.Regexp, seed uint64) []byte {
	if len(b) > schemaBytesMax {
		return b
	}
	repeat := func(least, most int) []byte {
		if most < 0 || most > least {
			least += int(seed & 1)
		}
		for i := range least {
			b = inventPattern(b, re.Sub[0], mix(seed+uint64(i)))
		}
		return b
	}
	switch re.Op {
	case syntax.OpLiteral:
		return append(b, string(re.Rune)...)
	case syntax.OpCharClass:
		return append(b, string(inventRune(re.Rune, seed))...)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return append(b, 'a'+byte(seed%26))
	case syntax.OpCapture:
		return inventPattern(b, re.Sub[0], mix(seed))
	case syntax.OpStar:
		return repeat(0, -1)
	case syntax.OpPlus:
		return repeat(1, -1)
	case syntax.OpQuest:
		return repeat(0, 1)
	case syntax.OpRepeat:
		return repeat(re.Min, re.Max)
	case syntax.OpConcat:
		for i, sub := range re.Sub {
			b = inventPattern(b, sub, mix(seed+uint64(i)))
		}
	case syntax.OpAlternate:
		return inventPattern(b, re.Sub[seed%uint64(len(re.Sub))], mix(seed))
	}
	return b // anchors and the like match where they stand
}

// inventRune picks one of a class, a letter or digit if there is one, or else
// the first.
func inventRune(ranges []rune, seed uint64) rune {
	const common = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	in := func(r rune) bool {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= r && r <= ranges[i+1] {
				return true
			}
		}
		return false
	}
	start := int(seed % uint64(len(common)))
	if i := strings.IndexFunc(common[start:]+common[:start], in); i >= 0 {
		return rune((common[start:] + common[:start])[i])
	}
	if len(ranges) == 0 {
		return 'a' // nothing matches
	}
	return ranges[0]
}
