package vllmapi

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// scanObject and scanList against encoding/json.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, ` { "a" : 1 , "b" : [ 1 , { "c" : "}\\\"" } ] , "a" : null } `, `[1,"]",[[]],{"x":"[\\"},true , -1e5]`,
		`"x"`, `5`, `null`, `{"":{"":""}}`, `{"\u0061\"":"\\"}`, `[[[[]]],"\\\\"]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) || !utf8.Valid(raw) {
			return
		}
		var object map[string]json.RawMessage
		isObject := json.Unmarshal(raw, &object) == nil && object != nil
		members, ok := scanObject(raw)
		if ok != isObject {
			t.Fatalf("scanObject(%q): %v", raw, ok)
		}
		got := map[string]json.RawMessage{}
		for _, m := range members {
			got[m.name] = m.raw
		}
		if len(got) != len(object) {
			t.Fatalf("scanObject(%q) = %q, want %q", raw, got, object)
		}
		for name, want := range object {
			if !bytes.Equal(got[name], want) {
				t.Errorf("scanObject(%q): %q is %q, want %q", raw, name, got[name], want)
			}
		}
		var list []json.RawMessage
		isList := json.Unmarshal(raw, &list) == nil && list != nil
		items, ok := scanList(raw)
		if ok != isList || len(items) != len(list) {
			t.Fatalf("scanList(%q) = %q, %v, want %q", raw, items, ok, list)
		}
		for i := range list {
			if !bytes.Equal(items[i], list[i]) {
				t.Errorf("scanList(%q): item %d is %q, want %q", raw, i, items[i], list[i])
			}
		}
	})
}
