package vllmapi

import (
	"bytes"
	"encoding/json"
	"regexp/syntax"
	"slices"
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
