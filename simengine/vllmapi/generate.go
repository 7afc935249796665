package vllmapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
)

// generate answers a request to generate; of an API that the body tells, if a is
// nil.
func (s *Server) generate(x *exchange, a *api) {
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	fault := s.faults.take(time.Now())
	if fault.beforeBody(x) {
		return
	}
	body, ok := x.body(s.c.MaxBody)
	if !ok || fault.beforeAnswer(x) {
		return
	}
	j, err := s.readJob(x, a, body)
	if err != nil {
		err.write(x)
		return
	}
	j.x, j.fault, j.created = x, fault, time.Now().Unix()
	j.name()
	j.r = j.g.api.render(j)
	x.entry.Model, x.entry.PromptTokens = j.g.model, j.promptTokens

	outputs, err := s.submit(j)
	if err != nil {
		err.write(x)
		return
	}
	defer outputs.close()
	defer j.note()
	j.forget()
	ctx := x.r.Context()
	if j.g.stream {
		j.sendStream(ctx, outputs)
	} else {
		j.sendWhole(ctx, outputs)
	}
}

// queue counts n more sequences, unless that is more than there may be.
func (s *Server) queue(n int) bool {
	if now := s.queued.Add(int64(n)); s.c.MaxQueued == 0 || now <= int64(s.c.MaxQueued) {
		return true
	}
	s.queued.Add(int64(-n))
	if s.c.Exporter != nil {
		s.c.Exporter.ObserveRejection()
	}
	return false
}

var busy = &apiError{http.StatusServiceUnavailable, "Service Unavailable", "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance.", ""}

// readJob makes a job of a body.
func (s *Server) readJob(x *exchange, a *api, body []byte) (*job, *apiError) {
	if !isJSON(x.r) {
		return nil, unsupportedMedia
	}
	f := parseForm(body)
	if err := f.problem(nil); err != nil {
		return nil, err
	}
	if a == nil {
		if a = textAPI; f.has("messages") {
			a = chatAPI
		}
	}
	g := a.read(s, f, x.r.Header)
	if err := f.problem(a.order); err != nil {
		return nil, err
	}
	g.api = a
	return s.prepare(g)
}

// forget drops what isn't needed any more: ten thousand streams wait with what
// is left.
func (j *job) forget() {
	if !j.g.echo && !j.g.returnIDs && j.g.promptLogprobs == none {
		j.g.prompts = nil
	}
	for _, q := range j.sequences {
		q.request.Blocks, q.request.OutputBlocks, q.request.Source = nil, nil, nil
	}
}

// submit hands all sequences to the engine, or none. What it returns must be
// closed: that cancels in the engine whatever still runs.
func (s *Server) submit(j *job) (*outputs, *apiError) {
	generate, err := s.engineOf(j.g)
	if err != nil {
		return nil, err
	}
	if !s.queue(len(j.sequences)) {
		return nil, busy
	}
	streams := make([]*live.Stream, 0, len(j.sequences))
	for _, q := range j.sequences {
		// The request's context is watched by who waits for the stream.
		stream, err := generate(context.Background(), q.request)
		if err == nil {
			streams = append(streams, stream)
			continue
		}
		for _, stream := range streams {
			stream.Close()
		}
		s.queued.Add(int64(-len(j.sequences)))
		return nil, s.refused(q, err)
	}
	return merge(streams, func() { s.queued.Add(int64(-j.unfinished)) }), nil
}

// refused is the answer to a sequence that the engine didn't take.
func (s *Server) refused(q *sequence, err error) *apiError {
	switch {
	case errors.Is(err, simengine.ErrTooLong):
		return tooLong(s.c.MaxModelLen, q.request.PromptTokens)
	case errors.Is(err, simengine.ErrBadRequest):
		return refuse("", "%v", err)
	case errors.Is(err, simengine.ErrFull):
		return busy
	case errors.Is(err, live.ErrStopped):
		s.dead.Store(true)
	}
	return internalError("EngineCore encountered an issue. See stack trace (above) for the root cause.")
}

// engineOf is where a request goes: to the engine that the client names by its
// rank, or to the one that is the least loaded.
func (s *Server) engineOf(g *generation) (func(context.Context, simengine.Request) (*live.Stream, error), *apiError) {
	if g.rank == nil {
		return s.c.Driver.Generate, nil
	}
	if d := s.c.Driver.Rank(*g.rank); d != nil {
		return d.Generate, nil
	}
	n := 0
	for s.c.Driver.Rank(n) != nil {
		n++
	}
	return nil, refuse("", "data_parallel_rank %d is out of range [0, %d).", *g.rank, n)
}

// receive takes the next output into account, and tells what its sequence had
// generated before and whether there is more at once. It returns nil if the
// client left; what else goes wrong cuts the connection, as an engine that dies
// does.
func (j *job) receive(ctx context.Context, o *outputs) (q *sequence, before int, more bool) {
	out := o.next(ctx)
	if out.err != nil {
		if j.x.r.Context().Err() == nil {
			j.x.abort()
		}
		j.x.entry.Aborted = true
		return nil, 0, false
	}
	q = j.sequences[out.index]
	before = q.generated
	q.generated = out.GeneratedTokens
	q.cached = out.CachedTokens
	j.generated += q.generated - before
	if out.Finished {
		q.done = true
		q.finish = out.Reason
		j.unfinished--
		j.s.queued.Add(-1)
	}
	if out.Reason == simengine.ReasonAbort { // put to sleep
		q.cut(q.generated)
		q.reason = nil
	}
	return q, before, out.more
}
