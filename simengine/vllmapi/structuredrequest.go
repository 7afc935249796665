package vllmapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

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
	r := f.inside(f.at("response_format"), raw)
	if r == nil {
		none := invalid{kind: "model_attributes_type", msg: noModel}
		f.either("response_format", raw, none, none, none)
		return
	}
	kind, _ := r.get("type")
	schema, described := r.get("json_schema")
	switch kind := plainWord(kind); {
	case kind == "structural_tag":
		if !r.has("format") && !(r.has("structures") && r.has("triggers")) {
			f.adopt(refuseParam("response_format", "Invalid response_format structural_tag specification."))
		}
	case kind != "text" && kind != "json_object" && kind != "json_schema", described && lacksSchema("", schema) != nil:
		noFormat(r)
	case kind == "json_object":
		g.format = &formatAny
	case kind == "json_schema":
		if schema, ok := r.sub("json_schema"); ok {
			g.readSchema(schema)
		} else {
			f.adopt(refuseParam("response_format", "When response_format type is 'json_schema', the 'json_schema' field must be provided."))
		}
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
		switch kind, _ := f.kindOf(text.at("format"), format.raw, formatKinds); kind {
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

// noFormat notes what pydantic says of a response_format of none of its types:
// what it lacks to be each of them.
func noFormat(f *form) {
	kinds := []struct {
		types, schema string
		members       []string
	}{
		{"'text', 'json_object' or 'json_schema'", "json_schema", nil},
		{"'structural_tag'", "", []string{"format"}},
		{"'structural_tag'", "", []string{"structures", "triggers"}},
	}
	raw, given := f.get("type")
	for _, kind := range kinds {
		var notes []invalid
		add := func(what, loc, msg string, raw json.RawMessage) {
			notes = append(notes, invalid{kind: what, loc: loc, msg: msg, input: shownInput(raw)})
		}
		switch {
		case !given:
			add("missing", f.at("type"), "Field required", f.raw)
		case !strings.Contains(kind.types, "'"+plain(raw)+"'"):
			add("literal_error", f.at("type"), "Input should be "+kind.types, raw)
		}
		if schema, ok := f.get(kind.schema); ok && kind.schema != "" {
			notes = append(notes, lacksSchema(f.at(kind.schema), schema)...)
		}
		for _, name := range kind.members {
			if !f.has(name) {
				add("missing", f.at(name), "Field required", f.raw)
			}
		}
		*f.notes = append(*f.notes, notes...)
	}
}

// lacksSchema is what pydantic says of the member json_schema.
func lacksSchema(loc string, raw json.RawMessage) (notes []invalid) {
	members, ok := scanObject(raw)
	if !ok {
		return []invalid{{kind: "model_attributes_type", loc: loc, msg: noModel, input: shownInput(raw)}}
	}
	named := false
	for _, m := range members {
		switch {
		case m.name == "name" && m.raw[0] == '"':
			named = true
		case m.name == "schema" && m.raw[0] != '{' && string(m.raw) != "null":
			notes = append(notes, invalid{kind: "dict_type", loc: loc + ".schema", msg: "Input should be a valid dictionary", input: shownInput(m.raw)})
		}
	}
	if !named {
		notes = append([]invalid{{kind: "missing", loc: loc + ".name", msg: "Field required", input: shownInput(raw)}}, notes...)
	}
	return notes
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
	g.constrain(f, s, found[0])
	f.adopt(s.err)
}

// constrain reads the one constraint that is there.
func (g *generation) constrain(f, s *form, name string) {
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
		items, ok := s.list(name)
		if ok && len(items) == 0 {
			g.refuseLate(refuse("", "Choice '[]' cannot be an empty list"))
		}
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
		} else if unclosed(err) {
			g.refuseLate(refuse("", "Grammar error: invalid regex %s (in regex)", strconv.Quote(text)))
		}
	case "structural_tag":
		text, _ := s.text(name)
		var tag map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &tag) != nil || len(tag) == 0 {
			f.adopt(refuseParam("structured_outputs", "Invalid structured_outputs structural_tag specification."))
		}
	}
}

// unclosed tells whether an expression is none in any grammar.
func unclosed(err error) bool {
	var e *syntax.Error
	return errors.As(err, &e) && (e.Code == syntax.ErrMissingParen || e.Code == syntax.ErrUnexpectedParen || e.Code == syntax.ErrMissingBracket)
}

// plainWord is a text's, empty for any other value.
func plainWord(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '"' {
		return unquote(raw)
	}
	return ""
}
