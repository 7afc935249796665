package vllmapi

import (
	"bytes"
	"encoding/json"
	"regexp/syntax"
	"slices"
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

// The kinds of constraint of structured_outputs.
var constraints = []string{"json", "regex", "choice", "grammar", "json_object", "structural_tag"}

const noConstraint = "You must use one kind of structured outputs constraint but none are specified: {'json': None, 'regex': None, 'choice': None, " +
	"'grammar': None, 'json_object': None, 'disable_any_whitespace': False, 'disable_additional_properties': False, 'whitespace_pattern': None, " +
	"'structural_tag': None, '_backend': None, '_backend_was_auto': False}"

// readFormat reads what a chat or completion says of the form of replies.
func (g *generation) readFormat(f *form) {
	g.readConstraint(f)
	raw, given := f.get("response_format")
	if !given {
		return
	}
	r := f.within(f.at("response_format"), raw)
	if r == nil {
		return
	}
	switch kind, _ := r.text("type"); kind {
	case "text", "structural_tag":
	case "json_object":
		g.format = &formatAny
	case "json_schema":
		if schema, ok := r.sub("json_schema"); ok {
			schema.need("name")
			g.readSchema(schema)
		} else {
			f.adopt(refuseParam("response_format", "When response_format type is 'json_schema', the 'json_schema' field must be provided."))
		}
	default:
		noFormat(r)
	}
	f.adopt(r.err)
}

// readTextFormat is readFormat for the Responses API.
func (g *generation) readTextFormat(f *form) {
	g.readConstraint(f)
	text, ok := f.sub("text")
	if !ok {
		return
	}
	if format, ok := text.sub("format"); ok {
		if f.has("structured_outputs") {
			f.adopt(refuseParam("structured_outputs", "Cannot specify both structured_outputs and text.format"))
		}
		switch kind, _ := format.text("type"); kind {
		case "json_object":
			g.format = &formatAny
		case "json_schema":
			g.readSchema(format)
		}
		text.adopt(format.err)
	}
	f.adopt(text.err)
}

// readSchema reads a format's member schema.
func (g *generation) readSchema(f *form) {
	schema, ok := f.get("schema")
	switch {
	case !ok:
		g.refuseLate(refuse("", "%s", noConstraint))
	case schema[0] != '{':
		f.fail("dict_type", "schema", "Input should be a valid dictionary")
	default:
		g.format = &format{schema: slices.Clone(schema)}
	}
}

// noFormat notes what pydantic says of a response_format of an unknown type:
// what each kind of format lacks.
func noFormat(f *form) {
	kinds := []struct{ name, types string }{
		{"ResponseFormat", "'text', 'json_object' or 'json_schema'"},
		{"StructuralTagResponseFormat", "'structural_tag'"}, {"LegacyStructuralTagResponseFormat", "'structural_tag'"},
	}
	members := [][]string{nil, {"format"}, {"structures", "triggers"}}
	raw, given := f.get("type")
	for i, kind := range kinds {
		loc := f.loc + "." + kind.name + "."
		if given {
			f.invalid("literal_error", loc+"type", "Input should be "+kind.types, raw)
		} else {
			f.invalid("missing", loc+"type", "Field required", f.raw)
		}
		for _, name := range members[i] {
			if !f.has(name) {
				f.invalid("missing", loc+name, "Field required", f.raw)
			}
		}
	}
}

// readConstraint reads structured_outputs, vLLM's own member.
func (g *generation) readConstraint(f *form) {
	s, given := f.sub("structured_outputs")
	if !given {
		return
	}
	var found []string
	for _, name := range constraints {
		if s.has(name) {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		f.adopt(refuse("", "%s", noConstraint))
		return
	}
	if len(found) > 1 {
		f.adopt(refuse("", "You can only use one kind of constraints for structured outputs ('json', 'regex' or 'choice')."))
		return
	}
	if g.choice.mode == toolsNamed && slices.Contains(constraints[:3], found[0]) {
		f.adopt(refuse("", "You can only either use constraints for structured outputs or tools, not both."))
		return
	}
	g.constrain(s, found[0])
	f.adopt(s.err)
}

// constrain reads the one constraint that is there.
func (g *generation) constrain(s *form, name string) {
	switch raw, _ := s.get(name); name {
	case "json":
		schema := raw
		if raw[0] == '"' {
			schema = bytes.TrimSpace([]byte(unquote(raw))) // may be anything
		}
		if !json.Valid(schema) || schema[0] != '{' {
			g.refuseLate(refuse("", "Invalid JSON grammar specification."))
			return
		}
		g.format = &format{schema: slices.Clone(schema)}
	case "json_object":
		g.format = &format{object: s.boolean(name, false)}
	case "choice":
		items, _ := s.list(name)
		g.format = &format{}
		for i, raw := range items {
			if raw[0] != '"' {
				s.invalid("string_type", item(s.at(name), i), "Input should be a valid string", raw)
				return
			}
			g.format.choices = append(g.format.choices, unquote(raw))
		}
	case "regex":
		text, _ := s.text(name)
		// vLLM's grammars know more than this does: what it doesn't is words.
		if pattern, err := syntax.Parse(text, syntax.Perl); err == nil {
			g.format = &format{pattern: pattern}
		}
	}
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
