package vllmapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
)

func (s *Server) chatCompletions(x *exchange) { s.generate(x, true) }
func (s *Server) completions(x *exchange)     { s.generate(x, false) }

// generate answers a request to generate.
func (s *Server) generate(x *exchange, chat bool) {
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
	if !isJSON(x.r) {
		unsupportedMedia.write(x)
		return
	}
	j, err := s.prepare(body, chat)
	if err != nil {
		err.write(x)
		return
	}
	j.x, j.fault, j.created = x, fault, time.Now().Unix()
	j.name(s, x.r.Header.Get("X-Request-Id"))
	x.entry.Model, x.entry.PromptTokens = j.g.model, j.promptTokens

	// Ending this context cancels in the engine whatever still runs.
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	streams, err := s.submit(ctx, j.sequences)
	if ctx.Err() != nil { // the client left
		return
	}
	if err != nil {
		err.write(x)
		return
	}
	j.rank = streams[0].Rank()
	outputs := merge(ctx, streams)
	defer outputs.wait()
	defer cancel() // before wait
	defer j.note(s)
	if j.g.stream {
		j.sendStream(ctx, outputs)
	} else {
		j.sendWhole(ctx, outputs)
	}
}

// job is a request to generate that was found good, and its answer so far.
type job struct {
	x            *exchange
	g            *generation
	fault        *armedFault
	id           string
	created      int64
	details      bool // usage tells cached tokens
	promptTokens int  // of all prompts
	maxTokens    int  // bound of a reply, of the last prompt
	sequences    []*sequence
	generated    int // tokens of all sequences
	rank         int // of the engine that the first sequence runs on
	unfinished   int
}

// sequence is one choice.
type sequence struct {
	reply
	index     int
	request   simengine.Request
	cached    int
	generated int
	done      bool
}

// prepare makes the sequences of a request.
func (s *Server) prepare(body []byte, chat bool) (*job, *apiError) {
	g, err := readGeneration(body, chat, s.c.MaxModelLen)
	if err != nil {
		return nil, err
	}
	if g.model, err = s.resolve(g.model); err != nil {
		return nil, err
	}
	engine := s.c.Driver.Config()
	if g.priority != 0 && !engine.PriorityScheduling {
		return nil, refuse("priority", "Got priority %d but Priority scheduling is not enabled.", g.priority)
	}
	j := &job{g: g, details: !s.c.NoPromptTokensDetails}
	seed := cacheSeed(g.model, g.salt)
	for i := range g.prompts {
		l := g.limits
		if l.maxTokens, err = g.fit(i, s.c.MaxModelLen); err != nil {
			return nil, err
		}
		j.promptTokens += len(g.prompts[i])
		j.maxTokens = l.maxTokens
		j.addSequences(s.textSeed(g, g.prompts[i]), seed, g.prompts[i], l, engine.BlockSize)
	}
	j.unfinished = len(j.sequences)
	return j, nil
}

// textSeed is what the replies to a prompt follow from. The model and the salt
// don't matter to what is said, as they wouldn't to a real model.
func (s *Server) textSeed(g *generation, prompt []token) uint64 {
	seed := s.c.Seed
	if g.seeded {
		seed = mix(g.seed + 1)
	}
	return fingerprint(seed, prompt)
}

// addSequences makes the n choices of a prompt.
func (j *job) addSequences(textSeed, cacheSeed uint64, prompt []token, l limits, blockSize int) {
	blocks := chain(cacheSeed, prompt, blockSize)
	full := len(blocks) * blockSize
	parent := cacheSeed
	if len(blocks) > 0 {
		parent = blocks[len(blocks)-1]
	}
	for choice := range j.g.n {
		r := plan(mix(textSeed+uint64(choice)), l)
		rest := append(append([]token(nil), prompt[full:]...), r.tokens...)
		j.sequences = append(j.sequences, &sequence{
			reply: r,
			index: len(j.sequences),
			request: simengine.Request{
				PromptTokens: len(prompt),
				Blocks:       blocks,
				OutputTokens: len(r.tokens),
				OutputBlocks: chain(parent, rest, blockSize),
				Finish:       r.finish,
				Priority:     j.g.priority,
			},
		})
	}
}

// name gives the answer its id: the client's, or one that no other answer has.
func (j *job) name(s *Server, client string) {
	prefix := "cmpl-"
	if j.g.chat {
		prefix = "chatcmpl-"
	}
	if client == "" {
		n := s.ids.Add(1)
		client = fmt.Sprintf("%016x%016x", mix(s.idSeed), mix(s.idSeed+n))
	}
	j.id = prefix + client
}

// submit hands all sequences to the engine, or none.
func (s *Server) submit(ctx context.Context, sequences []*sequence) ([]*live.Stream, *apiError) {
	streams := make([]*live.Stream, 0, len(sequences))
	for _, q := range sequences {
		stream, err := s.c.Driver.Generate(ctx, q.request)
		if err == nil {
			streams = append(streams, stream)
			continue
		}
		for _, stream := range streams {
			stream.Close()
		}
		switch {
		case errors.Is(err, simengine.ErrTooLong):
			return nil, tooLong(s.c.MaxModelLen, q.request.PromptTokens, q.request.OutputTokens)
		case errors.Is(err, simengine.ErrBadRequest):
			return nil, refuse("", "%v", err)
		case errors.Is(err, simengine.ErrFull):
			return nil, &apiError{http.StatusServiceUnavailable, "ServiceUnavailableError", err.Error(), ""}
		case errors.Is(err, live.ErrStopped):
			s.dead.Store(true)
		}
		return nil, internalError("EngineCore encountered an issue.")
	}
	return streams, nil
}

// outputs brings the streams of a request together.
type outputs struct {
	one    *live.Stream // if there is only one
	merged chan output
	group  sync.WaitGroup
}

type output struct {
	simengine.Output
	index int
	err   error
}

// merge starts a goroutine for each of several streams. They end with their
// stream or with ctx; wait waits for that.
func merge(ctx context.Context, streams []*live.Stream) *outputs {
	if len(streams) == 1 {
		return &outputs{one: streams[0]}
	}
	o := &outputs{merged: make(chan output, len(streams))}
	for i, stream := range streams {
		o.group.Go(func() {
			defer stream.Close()
			for {
				out, err := stream.Next(ctx)
				select {
				case o.merged <- output{out, i, err}:
				case <-ctx.Done():
					return
				}
				if err != nil || out.Finished {
					return
				}
			}
		})
	}
	return o
}

func (o *outputs) next(ctx context.Context) output {
	if o.one != nil {
		out, err := o.one.Next(ctx)
		return output{out, 0, err}
	}
	select {
	case out := <-o.merged:
		return out
	case <-ctx.Done():
		return output{err: ctx.Err()}
	}
}

func (o *outputs) wait() {
	if o.one != nil {
		o.one.Close()
	}
	o.group.Wait()
}

// receive takes the next output into account. It returns nil if the client
// left; what else goes wrong cuts the connection, as an engine that dies does.
func (j *job) receive(ctx context.Context, o *outputs) (*sequence, int) {
	out := o.next(ctx)
	if out.err != nil {
		if j.x.r.Context().Err() == nil {
			j.x.abort()
		}
		j.x.entry.Aborted = true
		return nil, 0
	}
	q := j.sequences[out.index]
	before := q.generated
	q.generated = out.GeneratedTokens
	q.cached = out.CachedTokens
	j.generated += q.generated - before
	if out.Finished {
		q.done = true
		q.finish = out.Reason
		j.unfinished--
	}
	return q, before
}

// note fills in the journal, and counts what was asked for.
func (j *job) note(s *Server) {
	j.x.entry.CachedTokens, j.x.entry.OutputTokens = j.cached(), j.generated
	if j.unfinished == 0 && s.c.Exporter != nil {
		s.c.Exporter.ObserveParams(j.rank, j.g.n, j.maxTokens)
	}
}

// cached sums up over prompts what was found in the cache for their first
// choice.
func (j *job) cached() int {
	sum := 0
	for i := 0; i < len(j.sequences); i += j.g.n {
		sum += j.sequences[i].cached
	}
	return sum
}
