package vllmapi

import (
	"encoding/json"
	"strconv"
)

// Bounds of made-up values, whatever a schema asks for.
const (
	schemaDepthMax   = 5
	schemaMembersMax = 32
	schemaItemsMax   = 2
	schemaBytesMax   = 4096 // of arguments; what is longer ends with empty values
)

// inventArguments makes up an object that fits a JSON schema, by the words that
// describe most arguments of functions: type, properties, items, enum, const,
// anyOf, oneOf, default. What it doesn't know is a short text.
func inventArguments(schema json.RawMessage, seed uint64) string {
	if len(schema) == 0 {
		return "{}"
	}
	b := inventValue(nil, schema, seed, 0)
	if len(b) == 0 || b[0] != '{' {
		return "{}"
	}
	return string(b)
}

func inventValue(b []byte, schema json.RawMessage, seed uint64, depth int) []byte {
	members, ok := scanObject(schema)
	f := &form{members: members}
	if !ok || depth > schemaDepthMax || len(b) > schemaBytesMax {
		return appendString(b, "")
	}
	if raw, ok := f.get("const"); ok {
		return append(b, canonical(raw)...)
	}
	if raw, ok := f.get("enum"); ok {
		if values, _ := scanList(raw); len(values) > 0 {
			return append(b, canonical(values[seed%uint64(len(values))])...)
		}
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		if raw, ok := f.get(name); ok {
			if choices, _ := scanList(raw); len(choices) > 0 {
				return inventValue(b, choices[0], seed, depth+1)
			}
		}
	}
	switch schemaKind(f) {
	case "object":
		return inventObject(b, f, seed, depth)
	case "array":
		b = append(b, '[')
		items, _ := f.get("items")
		for i := range 1 + seed>>3%schemaItemsMax {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = inventValue(b, items, mix(seed+i), depth+1)
		}
		return append(b, ']')
	case "integer":
		return strconv.AppendUint(b, 1+seed%100, 10)
	case "number":
		return strconv.AppendFloat(b, float64(1+seed%1000)/8, 'f', -1, 64)
	case "boolean":
		return strconv.AppendBool(b, seed&1 == 1)
	case "null":
		return append(b, "null"...)
	}
	var word []byte
	for i := range 1 + int(seed%3) {
		word = appendWord(word, seed, i, false)
	}
	return appendString(b, string(word[:len(word)-1]))
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
func inventObject(b []byte, f *form, seed uint64, depth int) []byte {
	raw, _ := f.get("properties")
	properties, _ := scanObject(raw)
	b = append(b, '{')
	for i, p := range properties[:min(len(properties), schemaMembersMax)] {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(appendString(b, p.name), ": "...)
		b = inventValue(b, p.raw, mix(seed^uint64(i+1)), depth+1)
	}
	return append(b, '}')
}
