package vllmapi

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"
)

// job is a request to generate that was found good, and its answer so far.
type job struct {
	s            *Server
	x            *exchange
	g            *generation
	r            renderer
	fault        *armedFault
	id           string
	nonce        uint64 // that no other job has
	created      int64
	promptTokens int // of all prompts
	media        int // of them, of images and files
	cacheable    int // of them, in full blocks
	maxTokens    int // bound of a reply, of the last prompt
	sequences    []*sequence
	generated    int // tokens of all sequences
	unfinished   int
}

// prepare makes the sequences of a request that reads well.
func (s *Server) prepare(g *generation) (*job, *apiError) {
	model, err := s.resolve(g.model)
	if err != nil {
		return nil, err
	}
	g.model = model
	if !s.engine.PriorityScheduling {
		g.priority = 0 // vLLM takes it, and it counts for nothing
	}
	j := &job{s: s, g: g}
	seed := cacheSeed(g.model, g.salt)
	if g.promptLogprobs != none {
		// Blocks that are found have no log probabilities: vLLM doesn't look.
		seed = mix(seed ^ mix(s.ids.Add(1)))
	}
	for i := range g.prompts {
		l := g.limits
		if l.maxTokens, err = g.fit(i, s.c.MaxModelLen); err != nil {
			return nil, err
		}
		if g.late == nil {
			j.promptTokens += len(g.prompts[i])
			j.maxTokens = l.maxTokens
			j.addSequences(i, seed, l)
		}
	}
	j.unfinished = len(j.sequences)
	return j, g.late
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

// addSequences makes the n choices of the i-th prompt.
func (j *job) addSequences(i int, cacheSeed uint64, l limits) {
	prompt, blockSize := j.g.prompts[i], j.s.engine.BlockSize
	textSeed := j.s.textSeed(j.g, prompt)
	blocks := chain(cacheSeed, prompt, blockSize)
	full := len(blocks) * blockSize
	parent := cacheSeed
	if len(blocks) > 0 {
		parent = blocks[len(blocks)-1]
	}
	j.media += countMedia(prompt)
	if !j.s.engine.DisablePrefixCaching {
		j.cacheable += full
	}
	asked := &vllmmetrics.Params{N: j.g.n, MaxTokens: l.maxTokens}
	for choice := range j.g.n {
		seed := mix(textSeed + uint64(choice))
		r := plan(seed, l, j.script(seed))
		j.sequences = append(j.sequences, &sequence{
			reply:  r,
			index:  len(j.sequences),
			prompt: i,
			seed:   seed,
			request: simengine.Request{
				PromptTokens: len(prompt),
				Blocks:       blocks,
				OutputTokens: r.count,
				OutputBlocks: chainReply(parent, prompt[full:], &r, blockSize),
				Finish:       r.finish,
				Priority:     j.g.priority,
				Adapter:      j.s.adapterOf(j.g.model),
				Source:       j.source(asked, prompt, &r),
			},
		})
	}
}

// script is what a reply says besides words. A completion has no parser that
// would make something else of it.
func (j *job) script(seed uint64) script {
	var s script
	if j.g.api == textAPI {
		s.fixed = j.g.format.invent(seed)
		return s
	}
	if j.s.c.Reasoning && j.g.think {
		s.thought = thoughtMin + int(mix(seed^0x6d757365)%(thoughtMax-thoughtMin+1))
		if j.g.budget > 0 {
			s.thought = min(s.thought, j.g.budget)
		}
	}
	s.calls = j.g.planCalls(seed)
	if len(s.calls) == 0 {
		s.fixed = j.g.format.invent(seed)
	}
	s.silent = len(s.calls) > 0 && (j.g.choice.mode != toolsAuto || mix(seed^0x73617973)%saysFirstOneIn != 0)
	return s
}

// name gives the answer its id: the client's, or one that no other answer has.
func (j *job) name() {
	n := j.s.ids.Add(1)
	j.nonce = mix(j.s.idSeed ^ mix(n))
	id := j.g.id
	if id == "" {
		id = hex32(mix(j.s.idSeed), mix(j.s.idSeed+n))
	}
	j.id = j.g.api.prefix + id
}

// hex32 is two numbers as one of 32 digits.
func hex32(a, b uint64) string {
	raw := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(make([]byte, 0, 16), a), b)
	return hex.EncodeToString(raw)
}

// cached sums up over prompts what was found in the cache for their last
// choice, as vLLM tells: it finds what the ones before it made.
func (j *job) cached() int {
	sum := 0
	for i := j.g.n - 1; i < len(j.sequences); i += j.g.n {
		sum += j.sequences[i].cached
	}
	return sum
}

// note fills in the journal.
func (j *job) note() { j.x.entry.CachedTokens, j.x.entry.OutputTokens = j.cached(), j.generated }

// loadHeader tells the load in an answer's header, if the client wants it, in
// the forms of Envoy's ORCA.
func (j *job) loadHeader() {
	stats := j.s.c.Driver.Stats
	const name = "endpoint-load-metrics"
	switch format := j.x.r.Header.Get("endpoint-load-metrics-format"); format {
	case "TEXT", "text":
		v := stats()
		j.x.Header().Set(name, "TEXT named_metrics.num_requests_waiting="+pyFloat(float64(v.Waiting))+", named_metrics.kv_cache_usage_perc="+pyFloat(v.KVUsage))
	case "JSON", "json":
		v := stats()
		j.x.Header().Set(name, `JSON {"named_metrics": {"num_requests_waiting": `+strconv.Itoa(v.Waiting)+`.0, "kv_cache_usage_perc": `+pyFloat(v.KVUsage)+`}}`)
	}
}
