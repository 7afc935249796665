package vllmapi

import (
	"context"
	"net/http"
	"sync"
)

// buffers are for what goes out at once. Streams that wait hold none.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

// bufferMax bounds, in bytes, what a stream collects before it writes, and what
// is kept for reuse.
const bufferMax = 32 << 10

// sending gathers what goes out at once.
type sending struct {
	x *exchange
	b *[]byte
}

func (j *job) sending() sending { return sending{j.x, buffers.Get().(*[]byte)} }

// add lets f add to what goes out.
func (s sending) add(f func([]byte) []byte) {
	*s.b = f(*s.b)
	s.spill()
}

func (s sending) event(r renderer, e *event) {
	*s.b = r.event(*s.b, e)
	s.spill()
}

func (s sending) spill() {
	if len(*s.b) >= bufferMax {
		_, _ = s.x.Write(*s.b) // a client that left is seen by its context
		*s.b = (*s.b)[:0]
	}
}

// flush sends all, and gives the buffer back.
func (s sending) flush() {
	if len(*s.b) > 0 {
		_, _ = s.x.Write(*s.b)
	}
	s.x.flush()
	if cap(*s.b) <= 2*bufferMax {
		*s.b = (*s.b)[:0]
		buffers.Put(s.b)
	}
}

var contentStream = []string{"text/event-stream; charset=utf-8"}

// sendStream answers with server-sent events, one for each choice and step.
//
// The header goes out before the engine has done anything, and the chunk with
// the role comes with the first token: that is when vLLM sends them. A step is
// one flush; a reader that is late gets several at once, but no other events.
func (j *job) sendStream(ctx context.Context, o *outputs) {
	j.x.Header()["Content-Type"] = contentStream
	j.x.WriteHeader(http.StatusOK)
	out := j.sending()
	out.add(j.r.begin)
	out.flush()
	for first := true; ; {
		if j.fault.due(j.generated) {
			j.strikeStream()
			return
		}
		q, before, more := j.receive(ctx, o)
		if q == nil {
			return
		}
		out := j.sending()
		if first {
			out.add(j.r.first)
			first = false
		}
		j.sendTokens(out, q, before)
		for more && !j.fault.due(j.generated) { // of the same step, or the reader is late
			if q, before, more = j.receive(ctx, o); q != nil {
				j.sendTokens(out, q, before)
			}
		}
		last := j.unfinished == 0 && !j.fault.due(j.generated)
		if last {
			out.add(j.r.end)
		}
		out.flush()
		if last {
			return
		}
	}
}

// sendTokens sends what a sequence generated since it had generated before
// tokens; not more than a fault lets through.
func (j *job) sendTokens(out sending, q *sequence, before int) {
	now, finished := q.generated, q.done
	if over := j.fault.beyond(j.generated); over > 0 {
		now, finished = max(before, now-over), false
	}
	for n := before + 1; n <= now; n++ {
		e := q.next(n, finished && n == now)
		out.event(j.r, &e)
	}
	if finished && now == before { // aborted: there is no token to tell of
		out.event(j.r, &event{q: q, n: now, finished: true, silent: true})
	}
}

// strikeStream is what the client sees of a fault in the middle of a stream.
func (j *job) strikeStream() {
	if j.fault.Kind == FaultCloseStream {
		j.x.abort()
	}
	out := j.sending()
	out.add(func(b []byte) []byte { return j.r.broken(b, internalError(j.fault.message())) })
	out.flush()
}

// sendWhole waits for all choices and answers at once.
func (j *job) sendWhole(ctx context.Context, o *outputs) {
	for {
		if j.fault.due(j.generated) {
			j.fault.strikeWhole(j.x)
			return
		}
		if j.unfinished == 0 {
			break
		}
		if q, _, _ := j.receive(ctx, o); q == nil {
			return
		}
	}
	j.loadHeader()
	b := buffers.Get().(*[]byte)
	*b = j.r.whole(*b)
	writeBody(j.x, http.StatusOK, *b)
	if cap(*b) <= 2*bufferMax {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}
