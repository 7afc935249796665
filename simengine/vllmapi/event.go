package vllmapi

import "github.com/caddyllm/caddy-llm-prefix/simengine"

// sequence is one choice of an answer.
type sequence struct {
	reply
	index     int
	prompt    int // index of
	seed      uint64
	request   simengine.Request
	cached    int
	generated int
	done      bool

	part int // where the answer stands: in which part,
	sent int // and how many bytes of it went out
	buf  []byte
}

// event is what one token brings to a client. All APIs tell of the same
// events, each in its own way.
type event struct {
	q        *sequence
	n        int    // tokens of the sequence by now
	part     *part  // that the token belongs to, or nil
	text     []byte // of the part, since the event before; valid until the next
	opens    bool   // a call begins: its name is out, its arguments follow
	finished bool   // nothing more will come
	silent   bool   // no token came
}

// next is the event of the n-th token. It must be called for each token in
// order.
func (q *sequence) next(n int, finished bool) event {
	e := event{q: q, n: n, finished: finished}
	for q.part < len(q.parts) && q.parts[q.part].to < n {
		q.part, q.sent = q.part+1, 0
	}
	if q.part == len(q.parts) || q.parts[q.part].from >= n {
		return e
	}
	e.part = &q.parts[q.part]
	e.opens = e.part.kind == toolCall && n-e.part.from == e.part.lead
	shown := e.part.shown(n, q.hold)
	q.buf = e.part.appendText(q.buf[:0], q.sent, shown)
	e.text, q.sent = q.buf, max(q.sent, shown)
	return e
}

// plain says whether a reply is nothing but words, for which servers need no
// parser.
func (q *sequence) plain() bool {
	return len(q.parts) == 0 || len(q.parts) == 1 && q.parts[0].kind == content
}

// said is all that was said, or thought, in a reply that is complete.
func (q *sequence) said(kind partKind) string {
	for i := range q.parts {
		if q.parts[i].kind == kind {
			return q.parts[i].text()
		}
	}
	return ""
}

// calls are the calls of a reply that is complete. One that was cut short is
// none to the parser that looks for them.
func (q *sequence) calls() []call {
	var calls []call
	for i := range q.parts {
		if p := &q.parts[i]; p.kind == toolCall && !p.torn() {
			calls = append(calls, p.call)
		}
	}
	return calls
}

// torn is the text of a call that was cut short, as the model writes it.
func (q *sequence) torn() string {
	if len(q.parts) == 0 {
		return ""
	}
	p := &q.parts[len(q.parts)-1]
	if p.kind != toolCall || !p.torn() {
		return ""
	}
	if !p.named() {
		return "<tool_call>"
	}
	name := appendString(nil, p.call.name)
	return `<tool_call>{"name": ` + string(name) + `, "arguments": ` + p.text()
}

// thoughtTokens counts the tokens of thoughts among the first n.
func (q *sequence) thoughtTokens(n int) int {
	sum := 0
	for i := range q.parts {
		if p := &q.parts[i]; p.kind == thought {
			sum += max(0, min(n, p.to)-p.from)
		}
	}
	return sum
}

// endOf is a sequence's finish reason in the words of chats: a reply that calls
// tools of its own accord, or because it must call some, ends with that.
func (j *job) endOf(q *sequence) string {
	if q.finish == "stop" && j.g.choice.mode != toolsNamed && len(q.parts) > 0 && q.parts[len(q.parts)-1].kind == toolCall {
		return "tool_calls"
	}
	return q.finish
}
