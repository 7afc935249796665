package main

import (
	"encoding/json"

	"github.com/bytedance/sonic"
	"github.com/tidwall/gjson"
	"github.com/valyala/fastjson"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prefix"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
)

const blockBytes = prefix.DefaultBlock

// scan is the scanner's way.
func scan(complete bool) func([]byte) {
	s := new(prompt.Scanner)
	return func(body []byte) {
		if p, status := s.Scan(prompt.Chat, body, complete, blockBytes); status != prompt.OK || p.Bytes == 0 {
			panic("no prompt found")
		}
	}
}

// scanEach scans one body after the other.
func scanEach(bodies [][]byte) func([]byte) {
	one := scan(true)
	return func([]byte) {
		for _, body := range bodies {
			one(body)
		}
	}
}

// decodeOnly doesn't even hash.
const decodeOnly = "encoding/json into structs"

// rivals find model, tools, roles, contents and tool calls, and hash the texts.
// What tools are they don't ask: other white space there, or other escapes, are
// other tools for them.
var rivals = []struct {
	name string
	run  func([]byte)
}{
	{decodeOnly, func(body []byte) { decodeWith(json.Unmarshal, body) }},
	{"encoding/json, hashed", func(body []byte) { hashChat(decodeWith(json.Unmarshal, body)) }},
	{"sonic", func(body []byte) { hashChat(decodeWith(sonic.Unmarshal, body)) }},
	{"fastjson", withFastjson},
	{"gjson", withGjson},
}

type chat struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	Tools    json.RawMessage `json:"tools"`
	Messages []struct {
		Role       string `json:"role"`
		Name       string `json:"name"`
		Content    string `json:"content"`
		ToolCallID string `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
}

func decodeWith(unmarshal func([]byte, any) error, body []byte) *chat {
	c := new(chat)
	if err := unmarshal(body, c); err != nil {
		panic(err)
	}
	return c
}

// hasher chains texts in blocks, as the scanner does.
type hasher struct {
	chain  prefix.Chain
	hashes []uint64
	buf    []byte
}

var hashing hasher

func (h *hasher) reset() { h.chain.Reset(h.hashes, blockBytes) }

func (h *hasher) add(text string) {
	h.buf = append(h.buf[:0], text...)
	h.chain.Write(h.buf)
}

func (h *hasher) addBytes(text []byte) { h.chain.Write(text) }

func (h *hasher) seal() { h.hashes = h.chain.Seal(1) }

func hashChat(c *chat) {
	h := &hashing
	h.reset()
	h.addBytes(c.Tools)
	for i := range c.Messages {
		m := &c.Messages[i]
		h.add(m.Role)
		h.add(m.Content)
		for j := range m.ToolCalls {
			h.add(m.ToolCalls[j].Function.Name)
			h.add(m.ToolCalls[j].Function.Arguments)
		}
	}
	h.seal()
}

var parser fastjson.Parser

func withFastjson(body []byte) {
	v, err := parser.ParseBytes(body)
	if err != nil {
		panic(err)
	}
	h := &hashing
	h.reset()
	if tools := v.Get("tools"); tools != nil {
		h.buf = tools.MarshalTo(h.buf[:0])
		h.addBytes(h.buf)
	}
	for _, m := range v.GetArray("messages") {
		h.addBytes(m.GetStringBytes("role"))
		h.addBytes(m.GetStringBytes("content"))
		for _, c := range m.GetArray("tool_calls") {
			h.addBytes(c.GetStringBytes("function", "name"))
			h.addBytes(c.GetStringBytes("function", "arguments"))
		}
	}
	h.seal()
}

func withGjson(body []byte) {
	h := &hashing
	h.reset()
	h.add(gjson.GetBytes(body, "tools").Raw)
	gjson.GetBytes(body, "messages").ForEach(func(_, m gjson.Result) bool {
		h.add(m.Get("role").Str)
		h.add(m.Get("content").Str)
		m.Get("tool_calls").ForEach(func(_, c gjson.Result) bool {
			h.add(c.Get("function.name").Str)
			h.add(c.Get("function.arguments").Str)
			return true
		})
		return true
	})
	h.seal()
}
