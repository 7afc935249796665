package vllmapi

import "strconv"

// object writes the response as it is: with its output once that is complete.
func (r *responsesRenderer) object(b []byte, status string) []byte {
	j, g := r.j, r.j.g
	given := func(b []byte, name, absent string) []byte {
		b = append(append(append(b, `,"`...), name...), `":`...)
		if raw, ok := g.response.given[name]; ok {
			return append(b, canonical(echo(name, raw))...)
		}
		return append(b, absent...)
	}
	complete := status != "in_progress"
	b = appendString(append(b, `{"id":`...), j.id)
	b = strconv.AppendInt(append(b, `,"created_at":`...), j.created, 10)
	if status == "incomplete" {
		b = append(b, `,"incomplete_details":{"reason":"max_output_tokens"}`...)
	} else {
		b = append(b, `,"incomplete_details":null`...)
	}
	b = given(b, "instructions", "null")
	b = given(b, "metadata", "null")
	b = appendString(append(b, `,"model":`...), g.model)
	b = append(b, `,"object":"response","output":[`...)
	if complete {
		b = r.output(b)
	}
	b = strconv.AppendBool(append(b, `],"parallel_tool_calls":`...), g.response.parallel)
	b = appendFloat(append(b, `,"temperature":`...), g.response.temperature)
	if len(g.response.given["tools"]) == 0 || string(g.response.given["tools"]) == "[]" {
		b = append(b, `,"tool_choice":"none"`...)
	} else {
		b = given(b, "tool_choice", `"auto"`)
	}
	b = given(b, "tools", "[]")
	b = appendFloat(append(b, `,"top_p":`...), g.response.topP)
	b = strconv.AppendInt(append(b, `,"background":false,"max_output_tokens":`...), int64(j.maxTokens), 10)
	b = given(b, "max_tool_calls", "null")
	b = given(b, "previous_response_id", "null")
	b = append(b, `,"prompt":null`...)
	b = given(b, "reasoning", "null")
	b = appendString(append(b, `,"service_tier":`...), g.response.tier)
	b = appendString(append(b, `,"status":`...), status)
	b = given(b, "text", "null")
	b = append(b, `,"top_logprobs":`...)
	if g.logprobs == none {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, int64(g.logprobs), 10)
	}
	b = appendString(append(b, `,"truncation":`...), g.response.truncation)
	b = append(b, `,"usage":`...)
	if complete {
		b = r.usage(b)
	} else {
		b = append(b, "null"...)
	}
	b = given(b, "user", "null")
	b = appendFloat(append(b, `,"presence_penalty":`...), g.response.presence)
	b = appendFloat(append(b, `,"frequency_penalty":`...), g.response.frequency)
	return append(b, `,"kv_transfer_params":null,"ec_transfer_params":null,"input_messages":null,"output_messages":null}`...)
}

// output writes the items of a complete answer.
func (r *responsesRenderer) output(b []byte) []byte {
	q, from, i := r.j.sequences[0], len(b), 0
	for k := range q.parts {
		p := &q.parts[k]
		if p.kind == toolCall && p.torn() || p.kind != toolCall && p.bytes == 0 {
			continue
		}
		b = r.appendItem(b, p, i, "completed", p.text())
		b = append(b, ',')
		i++
	}
	if len(b) > from {
		b = b[:len(b)-1]
	}
	return b
}

func (r *responsesRenderer) usage(b []byte) []byte {
	u := r.j.usage()
	b = strconv.AppendInt(append(b, `{"input_tokens":`...), int64(u.prompt), 10)
	b = strconv.AppendInt(append(b, `,"input_tokens_details":{"cached_tokens":`...), int64(r.j.cached()), 10)
	b = strconv.AppendInt(append(b, `,"cache_write_tokens":`...), int64(r.j.cacheable-r.j.cached()), 10)
	b = append(b, `,"input_tokens_per_turn":[],"cached_tokens_per_turn":[]},"output_tokens":`...)
	b = strconv.AppendInt(b, int64(u.completion), 10)
	b = strconv.AppendInt(append(b, `,"output_tokens_details":{"reasoning_tokens":`...), int64(max(0, r.j.thoughts())), 10)
	b = append(b, `,"tool_output_tokens":0,"output_tokens_per_turn":[],"tool_output_tokens_per_turn":[]},"total_tokens":`...)
	b = strconv.AppendInt(b, int64(u.prompt+u.completion), 10)
	return append(b, '}')
}
