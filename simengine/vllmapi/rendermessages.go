package vllmapi

import (
	"strconv"
)

// messagesRenderer answers /v1/messages. The blocks of content are numbered;
// at most one is open.
type messagesRenderer struct {
	j     *job
	block int   // number of the open block, or of the next
	open  *part // nil: none
}

func (r *messagesRenderer) begin(b []byte) []byte { return b }

func (r *messagesRenderer) first(b []byte) []byte {
	b = append(b, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":"...)
	b = appendString(b, r.j.id)
	b = append(b, `,"type":"message","role":"assistant","content":[],"model":`...)
	b = appendString(b, r.j.g.model)
	b = append(b, `,"stop_reason":null,"stop_sequence":null,"usage":`...)
	b = appendMessagesUsage(b, usage{prompt: r.j.promptTokens, cached: -1})
	return append(b, "}}\n\n"...)
}

// appendMessagesUsage tells input tokens without those that were cached, before
// or now, as this API does.
func appendMessagesUsage(b []byte, u usage) []byte {
	b = strconv.AppendInt(append(b, `{"input_tokens":`...), int64(u.prompt-max(0, u.cached)-u.created), 10)
	b = strconv.AppendInt(append(b, `,"output_tokens":`...), int64(u.completion), 10)
	if u.cached >= 0 {
		b = strconv.AppendInt(append(b, `,"cache_creation_input_tokens":`...), int64(u.created), 10)
		b = strconv.AppendInt(append(b, `,"cache_read_input_tokens":`...), int64(u.cached), 10)
	}
	return append(b, '}')
}

func (r *messagesRenderer) event(b []byte, e *event) []byte {
	if e.part == nil || len(e.text) == 0 && !e.opens {
		return b
	}
	if r.open != e.part {
		b = r.shut(b)
		r.open = e.part
		b = append(b, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"content_block\":"...)
		switch e.part.kind {
		case thought:
			b = append(b, `{"type":"thinking","thinking":""}`...)
		case toolCall:
			b = appendToolUse(b, e.part.call)
			b = append(b, `,"input":{}}`...)
		default:
			b = append(b, `{"type":"text","text":""}`...)
		}
		b = r.number(b)
	}
	if len(e.text) == 0 {
		return b
	}
	switch e.part.kind {
	case thought:
		b = r.delta(b, `"thinking_delta","thinking"`, string(e.text))
	case toolCall:
		b = r.delta(b, `"input_json_delta","partial_json"`, string(e.text))
	default:
		b = r.delta(b, `"text_delta","text"`, string(e.text))
	}
	return b
}

func appendToolUse(b []byte, c call) []byte {
	b = appendString(append(b, `{"type":"tool_use","id":`...), c.id)
	return appendString(append(b, `,"name":`...), c.name)
}

func (r *messagesRenderer) delta(b []byte, kind, text string) []byte {
	b = append(b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":"...)
	b = append(append(b, kind...), ':')
	b = append(appendString(b, text), '}')
	return r.number(b)
}

// number ends an event with the number of its block.
func (r *messagesRenderer) number(b []byte) []byte {
	b = strconv.AppendInt(append(b, `,"index":`...), int64(r.block), 10)
	return append(b, "}\n\n"...)
}

// shut ends the open block.
func (r *messagesRenderer) shut(b []byte) []byte {
	if r.open == nil {
		return b
	}
	if r.open.kind == thought {
		b = r.delta(b, `"signature_delta","signature"`, r.signature())
	}
	b = append(b, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\""...)
	b = r.number(b)
	r.open = nil
	r.block++
	return b
}

// signature is what a client sends back with a thought.
func (r *messagesRenderer) signature() string {
	seed := r.j.sequences[0].seed
	return hex32(mix(seed+1), mix(seed+2))
}

func (r *messagesRenderer) end(b []byte) []byte {
	q := r.j.sequences[0]
	b = r.shut(b)
	reason, stop := r.stopped(q)
	b = append(b, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"...)
	b = appendString(b, reason)
	b = append(appendReason(append(b, `,"stop_sequence":`...), stop), `},"usage":`...)
	b = appendMessagesUsage(b, r.j.usage())
	return append(b, "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
}

// stopped is what ended an answer in the words of this API, and the stop
// sequence if that was it.
func (r *messagesRenderer) stopped(q *sequence) (reason string, stop any) {
	if q.finish == "length" {
		return "max_tokens", nil
	}
	if len(q.calls()) > 0 {
		return "tool_use", nil
	}
	if s, ok := q.reason.(string); ok {
		return "stop_sequence", s
	}
	return "end_turn", nil
}

func (r *messagesRenderer) broken(b []byte, err *apiError) []byte {
	b = append(b, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"internal_error\",\"message\":"...)
	b = appendString(b, err.message)
	return append(b, "}}\n\n"...)
}

func (r *messagesRenderer) whole(b []byte) []byte {
	j, q := r.j, r.j.sequences[0]
	b = append(b, `{"id":`...)
	b = appendString(b, j.id)
	b = append(b, `,"type":"message","role":"assistant","content":[`...)
	from := len(b)
	if text := q.said(thought); text != "" {
		b = appendString(append(b, `{"type":"thinking","thinking":`...), text)
		b = appendString(append(b, `,"signature":`...), r.signature())
		b = append(b, `},`...)
	}
	if text := q.said(content) + q.torn(); text != "" {
		b = append(appendString(append(b, `{"type":"text","text":`...), text), `},`...)
	}
	for _, c := range q.calls() {
		b = append(appendToolUse(b, c), `,"input":`...)
		b = append(append(b, canonical([]byte(c.arguments))...), `},`...)
	}
	if len(b) > from {
		b = b[:len(b)-1]
	} else {
		b = append(b, `{"type":"text","text":""}`...)
	}
	b = appendString(append(b, `],"model":`...), j.g.model)
	reason, stop := r.stopped(q)
	b = appendString(append(b, `,"stop_reason":`...), reason)
	if stop != nil {
		b = appendReason(append(b, `,"stop_sequence":`...), stop)
	}
	b = appendMessagesUsage(append(b, `,"usage":`...), j.usage())
	return append(b, '}')
}

// anthropicBody is an error in the shape of this API.
func (e *apiError) anthropicBody() any {
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	return struct {
		Type  string `json:"type"`
		Error detail `json:"error"`
	}{"error", detail{e.kind, e.message}}
}
