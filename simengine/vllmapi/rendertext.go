package vllmapi

import "strconv"

// textRenderer answers /v1/completions.
type textRenderer struct {
	j       *job
	head    []byte
	offsets []int // of each choice, of its next token in the text
}

func (r *textRenderer) begin(b []byte) []byte {
	r.head = r.j.appendHead([]byte("data: "), "text_completion")
	r.offsets = make([]int, len(r.j.sequences))
	return b
}

func (r *textRenderer) first(b []byte) []byte { return b }

func (r *textRenderer) event(b []byte, e *event) []byte {
	j, q := r.j, e.q
	from := e.n - 1
	if e.silent {
		from = e.n
	}
	b = append(b, r.head...)
	b = r.choice(b, q, from, e.n, string(e.text), from == 0)
	b = append(b, `,"finish_reason":`...)
	if e.finished {
		b = append(append(append(b, '"'), q.finish...), `","stop_reason":`...)
		b = appendReason(b, q.reason)
	} else {
		b = append(b, `null,"stop_reason":null`...)
	}
	b = append(b, `,"prompt_token_ids":`...)
	if from == 0 && (j.g.echo || j.g.returnIDs) {
		b = appendIDs(b, j.g.prompt(q.prompt))
	} else {
		b = append(b, "null"...)
	}
	b = r.ids(b, q, from, e.n)
	u := usage{prompt: q.request.PromptTokens, completion: e.n, cached: -1, thought: notTold}
	return j.closeEvent(append(b, '}'), u, e.finished)
}

// choice writes a choice's index, its text for tokens from to to, and their
// log probabilities; with the echo if it is the first.
func (r *textRenderer) choice(b []byte, q *sequence, from, to int, text string, first bool) []byte {
	g := r.j.g
	b = strconv.AppendInt(append(b, `{"index":`...), int64(q.index), 10)
	b = append(b, `,"text":"`...)
	var echoed []token
	if first && g.echo {
		echoed = g.prompt(q.prompt)
		if !g.returnIDs {
			b = appendEscaped(b, detokenize(echoed))
		}
	}
	if g.onlyEcho {
		text, to = "", from
	}
	b = append(appendEscaped(b, text), `","logprobs":`...)
	if g.logprobs == none {
		return append(b, "null"...)
	}
	offset := 0
	if r.offsets != nil {
		offset = r.offsets[q.index]
	}
	b, offset = g.appendTextLogprobs(b, echoed, q, from, to, offset)
	if r.offsets != nil {
		r.offsets[q.index] = offset
	}
	return b
}

func (r *textRenderer) ids(b []byte, q *sequence, from, to int) []byte {
	b = append(b, `,"token_ids":`...)
	if !r.j.g.returnIDs {
		return append(b, "null"...)
	}
	return appendIDs(b, q.appendTokens(nil, from, to))
}

func (r *textRenderer) end(b []byte) []byte { return r.j.closeStream(b, r.head, r.j.usage()) }

func (r *textRenderer) broken(b []byte, err *apiError) []byte { return appendBroken(b, err) }

func (r *textRenderer) whole(b []byte) []byte {
	j, g := r.j, r.j.g
	b = j.appendHead(b, "text_completion")
	for i, q := range j.sequences {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.choice(b, q, 0, q.generated, q.said(content), true)
		b = append(append(append(b, `,"finish_reason":"`...), q.finish...), `","stop_reason":`...)
		b = appendReason(b, q.reason)
		b = r.ids(b, q, 0, q.generated)
		prompt := g.prompt(q.prompt)
		b = append(b, `,"prompt_logprobs":`...)
		b = g.appendPromptLogprobs(b, q.seed, prompt)
		b = append(b, `,"prompt_token_ids":`...)
		if g.returnIDs {
			b = appendIDs(b, prompt)
		} else {
			b = append(b, "null"...)
		}
		b = append(b, `,"routed_experts":null}`...)
	}
	b = append(b, `],"service_tier":null,"system_fingerprint":`...)
	b = appendString(b, j.s.fingerprint)
	b = append(b, `,"usage":`...)
	b = appendUsage(b, j.usage(), true, false)
	return append(b, `,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`...)
}
