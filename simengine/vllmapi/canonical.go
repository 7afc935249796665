package vllmapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// canonical writes JSON again without white space and with one style of
// escapes. Members keep their order, as templates keep it.
func canonical(raw json.RawMessage) string { return respace(raw, ",", ":") }

// pythonJSON is canonical with the blanks that Python puts, as vLLM writes the
// arguments of calls that come as objects.
func pythonJSON(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "{}"
	}
	return respace(raw, ", ", ": ")
}

func respace(raw json.RawMessage, comma, colon string) string {
	var b bytes.Buffer
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var depth []byte // per level: '[' list, '{' before a name, ':' before a value
	first := true
	for {
		t, err := d.Token()
		if err != nil {
			if err != io.EOF {
				// What is no JSON would have been refused with the body.
				return string(raw)
			}
			return b.String()
		}
		delim, isDelim := t.(json.Delim)
		if closes := isDelim && (delim == ']' || delim == '}'); closes {
			depth = depth[:len(depth)-1]
			b.WriteString(delim.String())
			first = false
			continue
		}
		if level := len(depth) - 1; level >= 0 {
			switch {
			case depth[level] == ':':
				b.WriteString(colon)
				depth[level] = '{'
			default:
				if !first {
					b.WriteString(comma)
				}
				if depth[level] == '{' {
					depth[level] = ':'
				}
			}
		}
		first = false
		switch v := t.(type) {
		case json.Delim:
			b.WriteString(v.String())
			depth = append(depth, byte(v))
			first = true
		case string:
			b.Write(appendString(b.AvailableBuffer(), v))
		case nil:
			b.WriteString("null")
		default: // bool, json.Number
			fmt.Fprint(&b, v)
		}
	}
}
