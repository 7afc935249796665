package vllmapi

import (
	"encoding/json"
	"strconv"
)

// responsesRenderer answers /v1/responses. The output's items are numbered; at
// most one is open.
type responsesRenderer struct {
	j        *job
	sequence int   // number of the next event
	item     int   // number of the open item, or of the next
	open     *part // nil: none
	logprobs []byte
}

// mark ends an event with its number and type; kind begins its line.
func (r *responsesRenderer) start(b []byte, kind string) []byte {
	return append(append(append(b, "event: "...), kind...), "\ndata: {"...)
}

func (r *responsesRenderer) finish(b []byte, kind string) []byte {
	b = strconv.AppendInt(append(b, `,"sequence_number":`...), int64(r.sequence), 10)
	r.sequence++
	return append(append(append(b, `,"type":"`...), kind...), "\"}\n\n"...)
}

func (r *responsesRenderer) begin(b []byte) []byte {
	for _, kind := range []string{"response.created", "response.in_progress"} {
		b = append(r.start(b, kind), `"response":`...)
		b = r.object(b, "in_progress")
		b = r.finish(b, kind)
	}
	return b
}

func (r *responsesRenderer) first(b []byte) []byte { return b }

func (r *responsesRenderer) event(b []byte, e *event) []byte {
	if e.part == nil || len(e.text) == 0 && !e.opens {
		return b
	}
	if r.open != e.part {
		b = r.shut(b)
		b = r.add(b, e.part)
	}
	if len(e.text) == 0 {
		return b
	}
	kind := [...]string{content: "response.output_text.delta", thought: "response.reasoning_text.delta", toolCall: "response.function_call_arguments.delta"}[e.part.kind]
	b = r.start(b, kind)
	if e.part.kind != toolCall {
		b = append(b, `"content_index":0,`...)
	}
	b = appendString(append(b, `"delta":`...), e.text)
	b = r.itemID(append(b, ','))
	if e.part.kind == content {
		b = append(b, `,"logprobs":`...)
		b = r.tokenLogprobs(b, e.q, e.n-1, e.n, false)
	}
	return r.finish(r.outputIndex(b), kind)
}

// tokenLogprobs writes the log probabilities of tokens from to to; whole with
// their bytes, which events of single tokens lack.
func (r *responsesRenderer) tokenLogprobs(b []byte, q *sequence, from, to int, whole bool) []byte {
	g := r.j.g
	if g.logprobs == none {
		return append(b, `[]`...)
	}
	likely := func(b []byte, l likely) []byte {
		text := g.tokenText(l.token)
		b = appendString(append(b, `{"token":`...), text)
		if whole {
			b = appendByteList(append(b, `,"bytes":`...), text)
		}
		return appendFloat(append(b, `,"logprob":`...), l.logprob)
	}
	b = append(b, '[')
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		list := likelies(q.seed, i, q.token(i), g.likelyCount())
		b = append(likely(b, list[0]), `,"top_logprobs":[`...)
		for k, l := range list[:g.logprobs] {
			if k > 0 {
				b = append(b, ',')
			}
			b = append(likely(b, l), '}')
		}
		b = append(b, `]}`...)
	}
	return append(b, ']')
}

func (r *responsesRenderer) itemID(b []byte) []byte {
	return appendString(append(b, `"item_id":`...), r.id(r.open.kind, r.item))
}

func (r *responsesRenderer) outputIndex(b []byte) []byte {
	return strconv.AppendInt(append(b, `,"output_index":`...), int64(r.item), 10)
}

// id is the name of an item.
func (r *responsesRenderer) id(kind partKind, i int) string {
	prefix := [...]string{content: "msg_", thought: "rs_", toolCall: "fc_"}[kind]
	return prefix + hex32(mix(r.j.nonce), mix(r.j.nonce+uint64(i)+1))
}

// add opens the item of a part.
func (r *responsesRenderer) add(b []byte, p *part) []byte {
	r.open = p
	const added, part = "response.output_item.added", "response.content_part.added"
	b = append(r.start(b, added), `"item":`...)
	b = r.appendItem(b, p, r.item, "in_progress", "")
	b = r.finish(r.outputIndex(b), added)
	if p.kind == toolCall {
		return b
	}
	b = r.itemID(append(r.start(b, part), `"content_index":0,`...))
	b = append(r.outputIndex(b), `,"part":`...)
	b = r.appendPart(b, p, "", false)
	return r.finish(b, part)
}

// shut closes the open item with all that it says.
func (r *responsesRenderer) shut(b []byte) []byte {
	p := r.open
	if p == nil {
		return b
	}
	const part, itemDone = "response.content_part.done", "response.output_item.done"
	text := p.text()
	switch p.kind {
	case toolCall:
		const kind = "response.function_call_arguments.done"
		b = appendString(append(r.start(b, kind), `"arguments":`...), text)
		b = r.outputIndex(r.itemID(append(b, ',')))
		b = strconv.AppendInt(append(b, `,"sequence_number":`...), int64(r.sequence), 10)
		r.sequence++
		b = append(append(append(b, `,"type":"`...), kind...), `","name":`...) // an extra, behind the protocol's
		b = append(appendString(b, p.call.name), "}\n\n"...)
	default:
		kind := "response.output_text.done"
		if p.kind == thought {
			kind = "response.reasoning_text.done"
		}
		b = r.itemID(append(r.start(b, kind), `"content_index":0,`...))
		if p.kind == content {
			b = append(b, `,"logprobs":[]`...)
		}
		// "text" stands behind the number in the alphabet.
		b = strconv.AppendInt(append(r.outputIndex(b), `,"sequence_number":`...), int64(r.sequence), 10)
		r.sequence++
		b = appendString(append(b, `,"text":`...), text)
		b = append(append(append(b, `,"type":"`...), kind...), "\"}\n\n"...)
		b = r.itemID(append(r.start(b, part), `"content_index":0,`...))
		b = append(r.outputIndex(b), `,"part":`...)
		b = r.finish(r.appendPart(b, p, text, true), part)
	}
	b = append(r.start(b, itemDone), `"item":`...)
	b = r.appendItem(b, p, r.item, "completed", text)
	b = r.finish(r.outputIndex(b), itemDone)
	r.open = nil
	r.item++
	return b
}

// appendPart writes the content of an item.
func (r *responsesRenderer) appendPart(b []byte, p *part, text string, complete bool) []byte {
	if p.kind == thought {
		b = appendString(append(b, `{"text":`...), text)
		return append(b, `,"type":"reasoning_text"}`...)
	}
	b = appendString(append(b, `{"annotations":[],"text":`...), text)
	b = append(b, `,"type":"output_text","logprobs":`...)
	switch {
	case !complete:
		b = append(b, `[]`...)
	case r.j.g.logprobs == none:
		b = append(b, "null"...)
	default:
		b = r.tokenLogprobs(b, r.j.sequences[0], p.from, p.to, true)
	}
	return append(b, '}')
}

// appendItem writes an item of the output.
func (r *responsesRenderer) appendItem(b []byte, p *part, i int, status, text string) []byte {
	id := r.id(p.kind, i)
	switch p.kind {
	case toolCall:
		b = appendString(append(b, `{"arguments":`...), text)
		b = appendString(append(b, `,"call_id":`...), p.call.id)
		b = appendString(append(b, `,"name":`...), p.call.name)
		b = appendString(append(b, `,"type":"function_call","id":`...), id)
		b = append(b, `,"async":null,"caller":null,"namespace":null,"status":`...)
		return append(appendString(b, status), '}')
	case thought:
		b = appendString(append(b, `{"id":`...), id)
		b = append(b, `,"summary":[],"type":"reasoning","content":`...)
		if text == "" {
			b = append(b, "null"...)
		} else {
			b = append(r.appendPart(append(b, '['), p, text, true), ']')
		}
		b = append(b, `,"encrypted_content":null,"status":`...)
		return append(appendString(b, status), '}')
	}
	b = appendString(append(b, `{"id":`...), id)
	b = append(b, `,"content":[`...)
	if text != "" {
		b = r.appendPart(b, p, text, true)
	}
	b = appendString(append(b, `],"role":"assistant","status":`...), status)
	return append(b, `,"type":"message","phase":null}`...)
}

func (r *responsesRenderer) end(b []byte) []byte {
	const kind = "response.completed"
	b = r.shut(b)
	b = append(r.start(b, kind), `"response":`...)
	from := len(b)
	b = r.object(b, r.status())
	r.remember(b[from:])
	return r.finish(b, kind)
}

func (r *responsesRenderer) broken(b []byte, err *apiError) []byte {
	body, _ := json.Marshal(err.body()) // of strings and integers
	return append(append(append(b, "event: error\ndata: "...), body...), "\n\n"...)
}

func (r *responsesRenderer) whole(b []byte) []byte {
	b = r.object(b, r.status())
	r.remember(b)
	return b
}

func (r *responsesRenderer) status() string {
	if r.j.sequences[0].finish == "length" {
		return "incomplete"
	}
	return "completed"
}

// remember keeps the answer for who wants to go on from it.
func (r *responsesRenderer) remember(body []byte) {
	if s := r.j.s.store; r.j.g.response.store {
		s.put(r.j.id, r.j.g.response.conversation.answered(r.j.sequences[0]), append([]byte(nil), body...))
	}
}
