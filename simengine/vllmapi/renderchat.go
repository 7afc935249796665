package vllmapi

import "strconv"

// chatRenderer answers /v1/chat/completions.
type chatRenderer struct {
	j    *job
	head []byte // of each event of a stream, up to its choices
}

func (r *chatRenderer) begin(b []byte) []byte {
	r.head = r.j.appendHead([]byte("data: "), "chat.completion.chunk")
	return b
}

// first sends the role, and what is to be echoed, of each choice.
func (r *chatRenderer) first(b []byte) []byte {
	for i := range r.j.sequences {
		b = r.open(b, i)
		b = appendString(append(b, `{"role":`...), r.j.g.role)
		b = append(b, `,"content":""},"logprobs":null,"finish_reason":null}`...)
		b = r.shut(b, i, 0, false)
		b = b[:len(b)-len("}\n\n")]
		b = append(b, `,"prompt_token_ids":`...)
		if r.j.g.returnIDs {
			b = appendIDs(b, r.j.g.prompt(0))
		} else {
			b = append(b, "null"...)
		}
		b = append(b, `,"prompt_text":null}`+"\n\n"...)
	}
	if r.j.g.echoed == "" {
		return b
	}
	for i := range r.j.sequences {
		b = r.open(b, i)
		b = appendString(append(b, `{"content":`...), r.j.g.echoed)
		b = append(b, `},"logprobs":null,"finish_reason":null}`...)
		b = r.shut(b, i, 0, false)
	}
	return b
}

// open begins an event up to the choice's delta.
func (r *chatRenderer) open(b []byte, index int) []byte {
	b = append(append(b, r.head...), `{"index":`...)
	b = strconv.AppendInt(b, int64(index), 10)
	return append(b, `,"delta":`...)
}

// shut ends an event of a choice that has n tokens.
func (r *chatRenderer) shut(b []byte, index, n int, last bool) []byte {
	if !r.j.g.continuousUsage {
		return r.j.closeEvent(b, usage{}, last)
	}
	u := usage{prompt: r.j.promptTokens, completion: n, cached: -1, thought: nullTold}
	if r.j.s.c.Reasoning {
		u.thought = r.j.sequences[index].thoughtTokens(n)
	}
	return r.j.closeEvent(b, u, last)
}

func (r *chatRenderer) event(b []byte, e *event) []byte {
	g, q := r.j.g, e.q
	silent := e.part == nil || len(e.text) == 0 && !e.opens || e.part.kind == thought && g.hidden
	bare := e.silent || g.hidden && !q.plain() // nothing about single tokens may leak
	if silent && !q.plain() && !e.finished && (bare || !g.returnIDs && g.logprobs == none) {
		return b
	}
	b = r.open(b, q.index)
	switch {
	case silent && !q.plain():
		b = append(b, `{}`...)
	case e.part == nil || e.part.kind == content:
		b = append(b, `{"content":"`...)
		b = append(appendEscaped(b, e.text), `"}`...)
	case e.part.kind == thought:
		b = append(b, `{"reasoning":"`...)
		b = append(appendEscaped(b, e.text), `"}`...)
	default:
		b = appendCallDelta(b, e)
	}
	b = append(b, `,"logprobs":`...)
	if g.logprobs == none || bare {
		b = append(b, "null"...)
	} else {
		b = g.appendChatLogprobs(b, q, e.n-1, e.n)
	}
	b = append(b, `,"finish_reason":`...)
	if e.finished {
		b = append(append(append(b, '"'), r.j.endOf(q)...), `","stop_reason":`...)
		b = appendReason(b, q.reason)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"token_ids":`...)
	if g.returnIDs && !bare {
		b = appendIDs(b, q.appendTokens(nil, e.n-1, e.n))
	} else {
		b = append(b, "null"...)
	}
	return r.shut(append(b, '}'), q.index, e.n, e.finished)
}

// appendCallDelta writes the name of a call, or more of its arguments.
func appendCallDelta(b []byte, e *event) []byte {
	b = append(b, `{"content":null,"tool_calls":[{`...)
	if e.opens {
		b = appendString(append(b, `"id":`...), e.part.call.id)
		b = append(b, `,"type":"function",`...)
	}
	b = append(b, `"index":`...)
	b = strconv.AppendInt(b, int64(e.q.callIndex(e.part)), 10)
	if e.opens {
		b = appendString(append(b, `,"function":{"name":`...), e.part.call.name)
	} else {
		b = appendString(append(b, `,"function":{"arguments":`...), e.text)
	}
	return append(b, `}}]}`...)
}

// callIndex is which of a reply's calls p is.
func (q *sequence) callIndex(p *part) int {
	n := 0
	for i := range q.parts {
		if &q.parts[i] == p {
			break
		}
		if q.parts[i].kind == toolCall {
			n++
		}
	}
	return n
}

func (r *chatRenderer) end(b []byte) []byte {
	u := r.j.usage()
	u.thought = r.j.thoughts()
	return r.j.closeStream(b, r.head, u)
}

func (r *chatRenderer) broken(b []byte, err *apiError) []byte { return appendBroken(b, err) }

func (r *chatRenderer) whole(b []byte) []byte {
	j, g := r.j, r.j.g
	b = j.appendHead(b, "chat.completion")
	for i, q := range j.sequences {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.choice(b, q)
	}
	b = append(b, `],"service_tier":null,"system_fingerprint":`...)
	b = appendString(b, j.s.fingerprint)
	b = append(b, `,"usage":`...)
	u := j.usage()
	u.thought = j.thoughts()
	b = appendUsage(b, u, true, true)
	b = append(b, `,"prompt_logprobs":`...)
	b = g.appendPromptLogprobs(b, j.sequences[0].seed, g.prompt(0))
	b = append(b, `,"prompt_token_ids":`...)
	if g.returnIDs {
		b = appendIDs(b, g.prompt(0))
	} else {
		b = append(b, "null"...)
	}
	return append(b, `,"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`...)
}

func (r *chatRenderer) choice(b []byte, q *sequence) []byte {
	g := r.j.g
	b = strconv.AppendInt(append(b, `{"index":`...), int64(q.index), 10)
	b = appendString(append(b, `,"message":{"role":`...), g.role)
	b = append(b, `,"content":`...)
	text, calls := q.said(content)+q.torn(), q.calls()
	if text == "" && g.echoed == "" && len(calls) > 0 && g.choice.mode == toolsAuto {
		b = append(b, "null"...)
	} else {
		b = append(b, '"')
		b = append(appendEscaped(appendEscaped(b, g.echoed), text), '"')
	}
	b = append(b, `,"refusal":null,"annotations":null,"audio":null,"function_call":null`...)
	for i, c := range calls {
		if i == 0 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"id":`...), c.id)
		b = appendString(append(b, `,"type":"function","function":{"name":`...), c.name)
		b = appendString(append(b, `,"arguments":`...), c.arguments)
		b = append(b, `}}`...)
	}
	if len(calls) > 0 {
		b = append(b, ']')
	}
	b = append(b, `,"reasoning":`...)
	if thoughts := q.said(thought); thoughts != "" && !g.hidden {
		b = appendString(b, thoughts)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `},"logprobs":`...)
	bare := g.hidden && !q.plain()
	if g.logprobs == none || bare {
		b = append(b, "null"...)
	} else {
		b = g.appendChatLogprobs(b, q, 0, q.generated)
	}
	b = append(append(append(b, `,"finish_reason":"`...), r.j.endOf(q)...), `","stop_reason":`...)
	b = appendReason(b, q.reason)
	b = append(b, `,"token_ids":`...)
	if g.returnIDs && !bare {
		b = appendIDs(b, q.appendTokens(nil, 0, q.generated))
	} else {
		b = append(b, "null"...)
	}
	return append(b, `,"routed_experts":null}`...)
}
