package fidelity

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// shape is what stays of a JSON value when its content goes: the keys of
// objects, the kinds of values. Items of a list that look alike are one.
func shape(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		var items []string
		for _, item := range v {
			if s := shape(item); len(items) == 0 || items[len(items)-1] != s {
				items = append(items, s)
			}
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for i, k := range keys {
			keys[i] = k + ": " + shape(v[k])
		}
		return "{" + strings.Join(keys, ", ") + "}"
	}
	return fmt.Sprintf("%T", v)
}

// literals are members whose very text is part of the form.
var literals = []string{"object", "type", "finish_reason", "stop_reason", "role", "owned_by", "status", "param", "code"}

// values gives the literals of a JSON value in the order of their paths.
func values(v any, path string) []string {
	var all []string
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			for _, s := range values(item, path+"[]") {
				if !slices.Contains(all, s) {
					all = append(all, s)
				}
			}
		}
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			if slices.Contains(literals, k) {
				switch v[k].(type) {
				case string, float64, nil:
					all = append(all, fmt.Sprintf("%s.%s=%v", path, k, v[k]))
				}
			}
			all = append(all, values(v[k], path+"."+k)...)
		}
	}
	return all
}

// form is what a body looks like: its shape and its literals if it is JSON, else
// its text.
func form(body string) string {
	var v any
	if json.Unmarshal([]byte(body), &v) != nil {
		return strings.TrimSpace(body)
	}
	return shape(v) + " " + strings.Join(values(v, ""), " ")
}
