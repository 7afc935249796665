package prompt

import (
	"bytes"
	"math"

	"github.com/cespare/xxhash/v2"
)

// Status says whether a scan found a prompt.
type Status uint8

// The outcomes of a scan.
const (
	OK       Status = iota // Prompt holds a prompt, or the head of one
	NoPrompt               // an object without a prompt, as far as was seen
	Broken                 // not JSON as the engines accept it, or nested deeper than maxDepth
)

// Prompt is what a scan found. Its slices are valid until the scanner's next
// Scan and while the body is unchanged.
type Prompt struct {
	// Chain holds one hash for each full block of the prompt, seeded by Model
	// and the cache salt. Of a batch it is the first prompt's.
	Chain []uint64
	// Bytes is the length of the canonical stream, of all prompts of a batch.
	// A token id counts as 4 bytes, about what a token of text has.
	Bytes int
	// ExtraTokens estimates what images, audio and video add, tokens.
	ExtraTokens int
	// Model is the hash of ModelName, 0 if neither the request nor its path names one.
	Model uint64
	// ModelName is client data: unbounded, and not to be used as a label.
	ModelName []byte
	// MaxTokens bounds the tokens of one answer, 0 if the request doesn't.
	MaxTokens int
	// N is the number of answers, at least 1: OpenAI's n times the prompts of
	// a completions batch.
	N int
	// Stream says that the client wants the answer in pieces, and Whole that it
	// doesn't. Where neither is set it depends on the engine, see Streams.
	Stream, Whole bool
	// Unread says that the engine doesn't look for the prompt in its prefix cache,
	// and Unkept that it doesn't leave it there either.
	Unread, Unkept bool
	// Background says that the answer only accepts the request.
	Background bool
	// Kind is that of the request: what the path said or, for Invocations, what
	// the body has.
	Kind Kind
	// Session is a hash of vLLM's session_id, and Previous of the response that
	// the prompt goes on from; 0 if the request has none.
	Session, Previous uint64
}

// Scanner extracts prompts. The zero value is ready for use; one that is used
// again needs no allocations. It is not safe for concurrent use.
type Scanner struct {
	// Seed is mixed into all chains, beside the model and the salt. Prompts of
	// unequal seeds share no hash, as those of unequal salts don't.
	Seed uint64
	// PathModel is the model of requests whose body names none, see ModelOf.
	PathModel string

	lexer
	feed
	hashes []uint64
	model  []byte // scratch of the model's unescaped name
	head   []byte // scratch of an attachment's first bytes
	keys   keySet
	root   span // the request's outermost object
	fields [nFields]span
	kind   Kind

	extraTokens int
	prompts     int  // prompts of a batch
	found       bool // something a model reads was fed
	leading     bool // no text was fed yet
	systemic    bool // the message under way is the system's
}

// Scan reads one request's body. complete says that body is all of it; without
// that, a body that ends anywhere counts as the head of a longer one and what
// it shows of the prompt is used. blockBytes is the size of a block, see
// prefix.Chain.Reset. The prompt is the zero Prompt unless the status is OK.
//
// Scan never fails on any input, and keeps body until the next Scan.
func (s *Scanner) Scan(kind Kind, body []byte, complete bool, blockBytes int) (Prompt, Status) {
	s.lexer.reset(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), complete)
	s.feed.reset(s.hashes, blockBytes)
	s.fields = [nFields]span{}
	s.kind, s.extraTokens, s.prompts, s.found = None, 0, 1, false
	s.leading, s.systemic = true, false

	s.noteFields()
	if !s.broken {
		s.feedPrompt(kind)
	}
	s.feed.flush()
	p := s.prompt()
	s.hashes = p.Chain
	switch {
	case s.broken:
		return Prompt{}, Broken
	case !s.found:
		return Prompt{}, NoPrompt
	}
	return p, OK
}

// noteFields walks the request's outermost object.
func (s *Scanner) noteFields() {
	i := s.space(0)
	if s.at(i) != '{' {
		s.fail(i)
		return
	}
	end := s.survey(i)
	if s.broken = s.broken || s.space(end) < len(s.body); s.broken {
		return // a second value too; engines refuse it as well
	}
	s.root = span{from: int32(i), to: int32(end)}
	note(&s.lexer, s.root, topField, s.fields[:])
}

func (s *Scanner) prompt() Prompt {
	p := Prompt{
		Bytes:       s.chain.Bytes() + s.counted,
		ExtraTokens: s.extraTokens,
		MaxTokens:   s.maxTokens(),
		N:           max(s.parameter(fN), 1),
		Stream:      s.is(s.fields[fStream], "true"),
		Whole:       s.is(s.fields[fStream], "false"),
		Kind:        s.kind,
	}
	s.rare(&p)
	p.N = int(min(int64(p.N)*int64(s.prompts), math.MaxInt32))
	p.ModelName = s.unquoted(s.fields[fModel], &s.model)
	if len(p.ModelName) == 0 && s.PathModel != "" {
		s.model = append(s.model[:0], s.PathModel...)
		p.ModelName = s.model
	}
	if len(p.ModelName) > 0 {
		p.Model = xxhash.Sum64(p.ModelName)
	}
	p.Session, _ = s.digestOf(s.fields[fSession])
	p.Previous, _ = s.digestOf(s.fields[fPrevious])
	p.Chain = s.chain.Seal(s.seed(p.Model))
	return p
}

// seed is what the chain is mixed with: who shares no cache shares no hash.
func (s *Scanner) seed(model uint64) uint64 {
	seed := s.Seed + model
	// vLLM ignores no salt but refuses an empty one.
	if salt, ok := s.digestOf(s.fields[fCacheSalt]); ok {
		seed = seed*0x9e3779b97f4a7c15 ^ salt
	}
	for _, f := range [...]field{fExtraKey, fAdapter} {
		if v := s.sampled(f); s.says(v) && !v.cut() {
			seed = (seed+uint64(f))*0x9e3779b97f4a7c15 ^ s.digested(v)
		}
	}
	return seed
}

// maxTokens takes the first bound that is set, newest name first.
func (s *Scanner) maxTokens() int {
	for _, f := range [...]field{fMaxCompletionTokens, fMaxOutputTokens, fMaxTokens, fMaxNewTokens} {
		if n := s.parameter(f); n > 0 {
			return n
		}
	}
	return 0
}

// parameter reads a number from the request or from the object that some APIs
// have for the parameters of sampling; 0 if it is in neither.
func (s *Scanner) parameter(f field) int {
	if n := s.integer(s.fields[f]); n > 0 {
		return n
	}
	return s.integer(s.sampling(f))
}

// sampled is a member of the request, or of its parameters of sampling.
func (s *Scanner) sampled(f field) span {
	if v := s.fields[f]; s.says(v) {
		return v
	}
	return s.sampling(f)
}

// sampling is a member of the object that some APIs have for the parameters of
// sampling.
func (s *Scanner) sampling(f field) (found span) {
	if v := s.fields[fSampling]; s.first(v) == '{' {
		for w := s.enter(v); w.next(); {
			if topField(w.name()) == f && s.says(w.value) {
				found = w.value
			}
		}
	}
	return found
}

// digestOf hashes a string's text. It reports false for an empty or absent
// string and for other values.
func (s *Scanner) digestOf(v span) (uint64, bool) {
	if s.first(v) != '"' || v.to-v.from <= 2 {
		return 0, false
	}
	s.feed.begin(toDigest)
	s.text(v)
	return s.feed.sum(), true
}
