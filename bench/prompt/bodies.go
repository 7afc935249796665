package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

type body struct {
	name string
	text []byte
	goal float64 // how many times as fast as encoding/json the scanner has to be
}

// asked is the goal for a chat. What agents send beside it is to be faster than with
// any library.
const asked = 20

// Goals of the recorded bodies, some four fifths of what is reached with vectors, so
// that noise misses none. Without, 20 and 12 are reached. Code is longer strings than
// a chat. Calls of tools have more members for each byte, which take most of the
// time: to find, to name and to put in order.
const (
	recordedCode  = 28
	recordedTools = 12
)

// chatOf is a chat body of about n bytes: prose and code with the escapes that
// both have. Other seeds make other chats.
func chatOf(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	b.WriteString(`{"model":"meta-llama/Llama-3.1-8B-Instruct","temperature":0.2,"stream":true,"messages":[{"role":"system","content":"You help."}`)
	for i := 0; b.Len() < n; i++ {
		var text strings.Builder
		for text.Len() < min(1500, n-b.Len()) {
			switch r.IntN(12) {
			case 0:
				text.WriteString("\n")
			case 1:
				fmt.Fprintf(&text, "if x[%d] == \"k%d\" {\n\treturn nil\n}\n", r.IntN(9), r.IntN(99))
			case 2:
				text.WriteString("café, naïve. ")
			default:
				text.WriteString("some words of plain prose, and more of it. ")
			}
		}
		fmt.Fprintf(&b, `,{"role":%q,"content":%s}`, []string{"user", "assistant"}[i%2], quoted(text.String()))
	}
	b.WriteString("]}")
	return []byte(b.String())
}

// agentOf is a chat body of about n bytes of an agent: definitions of tools, calls
// whose arguments are JSON within a string, and results that are JSON or code.
func agentOf(n int) []byte {
	r := rand.New(rand.NewPCG(3, 3))
	words := strings.Fields("the path of a file or directory to read from search pattern limit offset name user order item price status returns all that match")
	some := func(n int) string {
		text := make([]string, n)
		for i := range text {
			text[i] = words[r.IntN(len(words))]
		}
		return strings.Join(text, " ")
	}
	var b bytes.Buffer
	b.WriteString(`{"model":"m","stream":true,"messages":[{"role":"system","content":` + string(quoted(some(200))) + `}`)
	for i := 0; b.Len() < n-n/4; i++ {
		arguments := fmt.Sprintf(`{"query": %q, "limit": %d, "exact": true}`, some(3), r.IntN(100))
		fmt.Fprintf(&b, `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"tool_%d","arguments":%s}}]}`, i, r.IntN(12), quoted(arguments))
		var result strings.Builder
		for result.Len() < 1500 {
			if i%2 == 0 {
				fmt.Fprintf(&result, `{"id": %d, "name": %q, "price": %d.5, "tags": [%q, %q]}, `, r.IntN(1e6), some(2), r.IntN(900), some(1), some(1))
			} else {
				fmt.Fprintf(&result, "func f%d(%s string) error {\n\tif x[%d] < len(%q) && ok {\n\t\treturn nil\n\t}\n}\n", r.IntN(99), some(1), r.IntN(9), some(2))
			}
		}
		fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"call_%d","content":%s}`, i, quoted(result.String()))
	}
	b.WriteString(`],"tools":[`)
	for i := 0; i == 0 || b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"function","function":{"name":"tool_%d","description":%s,"parameters":{"type":"object","properties":{`, i, quoted(some(30)))
		for k := range 4 {
			if k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"%s_%d":{"type":"string","description":%s}`, some(1), k, quoted(some(8)))
		}
		b.WriteString(`},"required":["query"],"additionalProperties":false}}}`)
	}
	b.WriteString("]}")
	return b.Bytes()
}

// asciiOf is a chat body of about n bytes in Chinese, as Python writes it unless
// told otherwise: all of it in escapes, and spaces behind colons and commas.
func asciiOf(n int) []byte {
	r := rand.New(rand.NewPCG(4, 4))
	var b bytes.Buffer
	b.WriteString(`{"model": "m", "messages": [{"role": "system", "content": "You help."}`)
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `, {"role": %q, "content": "`, []string{"user", "assistant"}[i%2])
		for range 300 {
			switch r.IntN(20) {
			case 0:
				b.WriteString(`\u3002\n`)
			case 1:
				b.WriteString(" GPU ")
			default:
				fmt.Fprintf(&b, `\u%04x`, 0x4e00+r.IntN(0x5000))
			}
		}
		b.WriteString(`"}`)
	}
	b.WriteString("]}")
	return b.Bytes()
}

// imageOf is a chat body with an image of n bytes of base64.
func imageOf(n int) []byte {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	r := rand.New(rand.NewPCG(2, 2))
	data := make([]byte, n)
	for i := range data {
		data[i] = digits[r.IntN(len(digits))]
	}
	return fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`, data)
}

// quoted is a string as most clients write it: HTML is nothing special.
func quoted(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// recorded are real conversations of about 32 KB, one of an agent that calls
// tools and one of an agent that writes code.
func recorded(folder string) ([]body, error) {
	tools, err := ofTaubench(filepath.Join(folder, "taubench_gpt4o_airline.json.gz"))
	if err != nil {
		return nil, err
	}
	code, err := ofMiniswe(filepath.Join(folder, "lmcache_miniswe.jsonl.gz"))
	if err != nil {
		return nil, err
	}
	return []body{tools, code}, nil
}

func unzip(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

const wanted = 32 << 10

func ofTaubench(file string) (body, error) {
	data, err := unzip(file)
	if err != nil {
		return body{}, err
	}
	var runs []struct {
		Traj json.RawMessage `json:"traj"`
	}
	if err := json.Unmarshal(data, &runs); err != nil {
		return body{}, err
	}
	best := json.RawMessage(nil)
	for _, r := range runs {
		if len(r.Traj) <= wanted && len(r.Traj) > len(best) {
			best = r.Traj
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, best); err != nil {
		return body{}, err
	}
	return body{"recorded chat with tools", fmt.Appendf(nil, `{"model":"gpt-4o","messages":%s,"temperature":0}`, compact.Bytes()), recordedTools}, nil
}

func ofMiniswe(file string) (body, error) {
	data, err := unzip(file)
	if err != nil {
		return body{}, err
	}
	var b bytes.Buffer
	b.WriteString(`{"model":"m","messages":[{"role":"system","content":"You write code."}`)
	for line := range bytes.Lines(data) {
		var turn struct{ Input, Output string }
		if err := json.Unmarshal(line, &turn); err != nil {
			return body{}, err
		}
		for role, text := range map[string]string{"user": turn.Input} {
			if b.Len()+len(text) > wanted {
				text = text[:max(0, min(len(text), wanted-b.Len()))]
			}
			fmt.Fprintf(&b, `,{"role":%q,"content":%s},{"role":"assistant","content":%s}`, role, quoted(strings.ToValidUTF8(text, "")), quoted("done"))
		}
		if b.Len() >= wanted {
			b.WriteString("]}")
			return body{"recorded chat about code", b.Bytes(), recordedCode}, nil
		}
	}
	return body{}, errors.New("the recording is too short")
}
