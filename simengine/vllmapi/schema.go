package vllmapi

import (
	"encoding/json"
	"math"
	"regexp/syntax"
	"strconv"
	"strings"
)

// Bounds of made-up values, whatever a schema asks for.
const (
	schemaDepthMax   = 8
	schemaMembersMax = 32
	schemaItemsMax   = 2
	schemaBytesMax   = 4096 // of arguments; what is longer ends with empty values
)

// inventArguments makes up an object that fits a JSON schema, by the words that
// describe most arguments of functions: type, properties, items, enum, const,
// anyOf, oneOf, $ref, pattern, minimum, maximum. What it doesn't know is a short
// text.
func inventArguments(schema json.RawMessage, seed uint64) string {
	if len(schema) == 0 {
		return "{}"
	}
	b := inventor{schema}.value(nil, schema, seed, 0)
	if len(b) == 0 || b[0] != '{' {
		return "{}"
	}
	return string(b)
}

// inventor makes up values; references are into the whole schema.
type inventor struct{ whole json.RawMessage }

func (v inventor) value(b []byte, schema json.RawMessage, seed uint64, depth int) []byte {
	members, ok := scanObject(schema)
	f := &form{members: members, notes: new([]invalid)}
	if !ok || depth > schemaDepthMax || len(b) > schemaBytesMax {
		return appendString(b, "")
	}
	if path, ok := f.text("$ref"); ok {
		return v.value(b, v.find(path), seed, depth+1)
	}
	if raw, ok := f.get("const"); ok {
		return append(b, canonical(raw)...)
	}
	if raw, ok := f.get("enum"); ok {
		if values, _ := scanList(raw); len(values) > 0 {
			return append(b, canonical(values[seed%uint64(len(values))])...)
		}
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf"} {
		if raw, ok := f.get(name); ok {
			if choices, _ := scanList(raw); len(choices) > 0 {
				return v.value(b, choices[0], seed, depth+1)
			}
		}
	}
	switch schemaKind(f) {
	case "object":
		return v.object(b, f, seed, depth)
	case "array":
		b = append(b, '[')
		items, _ := f.get("items")
		for i := range 1 + seed>>3%schemaItemsMax {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = v.value(b, items, mix(seed+i), depth+1)
		}
		return append(b, ']')
	case "integer":
		return strconv.AppendInt(b, int64(within(f, float64(1+seed%100))), 10)
	case "number":
		return strconv.AppendFloat(b, within(f, float64(1+seed%1000)/8), 'f', -1, 64)
	case "boolean":
		return strconv.AppendBool(b, seed&1 == 1)
	case "null":
		return append(b, "null"...)
	}
	if pattern, ok := f.text("pattern"); ok {
		if re, err := syntax.Parse(pattern, syntax.Perl); err == nil {
			return appendString(b, string(inventPattern(nil, re, seed)))
		}
	}
	var word []byte
	for i := range 1 + int(seed%3) {
		word = appendWord(word, seed, i, false)
	}
	return appendString(b, string(word[:len(word)-1]))
}

// find is the part of the whole schema that a reference names, as
// "#/$defs/name"; nil if there is none.
func (v inventor) find(path string) json.RawMessage {
	at, ok := strings.CutPrefix(path, "#")
	if !ok {
		return nil
	}
	schema := v.whole
	for _, name := range strings.Split(at, "/")[1:] {
		members, _ := scanObject(schema)
		f := &form{members: members, notes: new([]invalid)}
		schema, _ = f.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
	}
	return schema
}

// within brings a number into a schema's bounds. A bound that isn't the number's
// own counts as one: the next whole number is within.
func within(f *form, n float64) float64 {
	bound := max(n, f.number("minimum", n), f.number("exclusiveMinimum", n-1)+1)
	bound = min(bound, f.number("maximum", bound), f.number("exclusiveMaximum", bound+1)-1)
	if math.Abs(bound) <= 1<<53 {
		return bound
	}
	return n // beyond what JSON's readers take exactly, or no number
}

// schemaKind is a schema's type; of several the first.
func schemaKind(f *form) string {
	raw, ok := f.get("type")
	if ok && raw[0] == '[' {
		if kinds, _ := scanList(raw); len(kinds) > 0 {
			raw = kinds[0]
		}
	}
	switch {
	case ok && raw[0] == '"':
		return unquote(raw)
	case f.has("properties"):
		return "object"
	}
	return "string"
}

// inventObject writes the members in the schema's order, with Python's blanks.
func (v inventor) object(b []byte, f *form, seed uint64, depth int) []byte {
	raw, _ := f.get("properties")
	properties, _ := scanObject(raw)
	b = append(b, '{')
	for i, p := range properties[:min(len(properties), schemaMembersMax)] {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(appendString(b, p.name), ": "...)
		b = v.value(b, p.raw, mix(seed^uint64(i+1)), depth+1)
	}
	return append(b, '}')
}
