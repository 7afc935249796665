package vllmapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// renderChat turns a chat into the tokens of its prompt, as a chat template
// does:
//
//	begin  [header "system" end tools… system text end-of-turn]
//	{header role [participant name] [call-result id] end text, media, calls… end-of-turn}…
//	header "assistant" end
//
// Tools stand first, in the turn of the system message, which is made if there
// is none. Each text is cut into tokens by itself, so a message's tokens
// depend on its own text only, and the assistant's reply comes back in the
// next turn as the tokens that were generated.
func renderChat(f *form) []token {
	messages, ok := f.list("messages")
	if !ok {
		f.fail("missing", "messages", "Field required")
		return nil
	}
	if len(messages) == 0 {
		f.refuse("messages", "messages must not be empty.")
		return nil
	}
	generate := f.boolean("add_generation_prompt", true)
	resume := f.boolean("continue_final_message", false)
	if generate && resume {
		f.refuse("", "Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
	}
	turns := make([]turn, len(messages))
	for i, raw := range messages {
		turns[i] = readTurn(f, i, raw)
	}
	tools := readTools(f)
	if f.err != nil {
		return nil
	}
	tokens := []token{tokenBegin}
	if len(tools) > 0 {
		first := turn{role: "system", open: true}
		if turns[0].role == "system" || turns[0].role == "developer" {
			first, turns = turns[0], turns[1:]
		}
		first.content = append(tools, first.content...)
		tokens = first.append(tokens, resume && len(turns) == 0)
	}
	for i := range turns {
		tokens = turns[i].append(tokens, resume && i == len(turns)-1)
	}
	if generate {
		tokens = append(appendText(append(tokens, tokenHeader), "assistant"), tokenHeaderEnd)
	}
	return tokens
}

// turn is one message.
type turn struct {
	role, name, result string
	content            []token
	open               bool
}

func (t *turn) append(tokens []token, open bool) []token {
	tokens = appendText(append(tokens, tokenHeader), t.role)
	if t.name != "" {
		tokens = appendText(append(tokens, tokenParticipant), t.name)
	}
	if t.result != "" {
		tokens = appendText(append(tokens, tokenCallResult), t.result)
	}
	tokens = append(append(tokens, tokenHeaderEnd), t.content...)
	if open {
		return tokens
	}
	return append(tokens, tokenEndOfTurn)
}

func readTurn(f *form, i int, raw json.RawMessage) turn {
	m := &form{loc: f.at("messages") + ", " + strconv.Itoa(i)}
	if json.Unmarshal(raw, &m.members) != nil || m.members == nil {
		f.adopt(malformed("dict_type", m.loc, "Input should be a valid dictionary"))
		return turn{}
	}
	var t turn
	var ok bool
	if t.role, ok = m.text("role"); !ok {
		m.fail("missing", "role", "Field required")
	}
	t.name, _ = m.text("name")
	t.result, _ = m.text("tool_call_id")
	t.content = readContent(m)
	t.content = appendCalls(m, t.content)
	f.adopt(m.err)
	return t
}

// readContent reads a message's content: absent, a string, or a list of parts.
// Neighbouring texts of a list are joined by a line feed, as vLLM does for
// templates that take strings; a list of one text is that text.
func readContent(m *form) []token {
	raw, ok := m.get("content")
	if !ok {
		return nil
	}
	if raw[0] == '"' {
		s, _ := m.text("content")
		return appendText(nil, s)
	}
	parts, ok := m.list("content")
	if !ok {
		return nil
	}
	var tokens []token
	var run []string
	for i, raw := range parts {
		text, media, err := readPart(raw, m.at("content")+", "+strconv.Itoa(i))
		if err != nil {
			m.adopt(err)
			return nil
		}
		if media == "" {
			run = append(run, text)
			continue
		}
		tokens = appendMedia(appendText(tokens, strings.Join(run, "\n")), media)
		run = nil
	}
	return appendText(tokens, strings.Join(run, "\n"))
}

// readPart reads a text, or what stands for an image, a sound or a file.
func readPart(raw json.RawMessage, loc string) (text, media string, err *apiError) {
	var s string
	if json.Unmarshal(raw, &s) == nil && raw[0] == '"' {
		return s, "", nil
	}
	p := &form{loc: loc}
	if json.Unmarshal(raw, &p.members) != nil || p.members == nil {
		return "", "", malformed("dict_type", loc, "Input should be a valid dictionary")
	}
	kind, ok := p.text("type")
	if !ok {
		p.fail("missing", "type", "Field required")
		return "", "", p.err
	}
	switch kind {
	case "text", "input_text", "output_text":
		text, ok = p.text("text")
	case "refusal":
		text, ok = p.text("refusal")
	case "thinking":
		text, ok = p.text("thinking")
	case "image_url", "audio_url", "video_url", "input_image", "input_audio", "file", "input_file":
		media, ok = readMedia(p, kind)
	default:
		return "", "", refuse("", "Unknown part type: %s", strconv.Quote(kind))
	}
	if !ok {
		p.fail("missing", kind, "Field required")
	}
	return text, media, p.err
}

// readMedia finds what tells one file from another: its address, which may
// hold its bytes, or else all that the part says of it.
func readMedia(p *form, kind string) (string, bool) {
	for _, name := range []string{kind, "image_url", "file"} {
		raw, ok := p.get(name)
		if !ok {
			continue
		}
		var address struct {
			URL string `json:"url"`
		}
		if json.Unmarshal(raw, &address.URL) == nil || json.Unmarshal(raw, &address) == nil && address.URL != "" {
			return kind + " " + address.URL, true
		}
		return kind + " " + canonical(raw), true
	}
	return "", false
}

// appendCalls adds the tool calls of an assistant's message.
func appendCalls(m *form, tokens []token) []token {
	calls, _ := m.list("tool_calls")
	for i, raw := range calls {
		c := &form{loc: m.at("tool_calls") + ", " + strconv.Itoa(i)}
		if json.Unmarshal(raw, &c.members) != nil {
			m.adopt(malformed("dict_type", c.loc, "Input should be a valid dictionary"))
			return nil
		}
		id, _ := c.text("id")
		tokens = appendText(append(tokens, tokenCall), id)
		if function, ok := c.sub("function"); ok {
			name, _ := function.text("name")
			tokens = appendText(append(tokens, tokenCallPart), name)
			arguments, _ := function.get("arguments")
			text := canonical(arguments)
			if len(arguments) > 0 && arguments[0] == '"' {
				text, _ = function.text("arguments")
			}
			tokens = appendText(append(tokens, tokenCallPart), text)
			m.adopt(function.err)
		}
		m.adopt(c.err)
	}
	return tokens
}

func readTools(f *form) []token {
	tools, _ := f.list("tools")
	var tokens []token
	for _, raw := range tools {
		tokens = appendText(append(tokens, tokenTools), canonical(raw))
	}
	return tokens
}

// canonical writes JSON again without white space and with one style of
// escapes. Members keep their order, as templates keep it.
func canonical(raw json.RawMessage) string {
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
				b.WriteByte(':')
				depth[level] = '{'
			default:
				if !first {
					b.WriteByte(',')
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
			b.WriteString(quoteJSON(v))
		case nil:
			b.WriteString("null")
		default: // bool, json.Number
			fmt.Fprint(&b, v)
		}
	}
}

// quoteJSON keeps <, > and &, which json.Marshal would escape for HTML.
func quoteJSON(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string into memory can't fail
	return strings.TrimSuffix(b.String(), "\n")
}
