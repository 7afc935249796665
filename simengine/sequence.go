package simengine

import (
	"cmp"
	"time"
)

// sequence is a request in the engine. A token is known once it is in the
// prompt or was generated, and computed once its keys and values are in a
// block: at each step a sequence computes the tokens that are known but not
// computed, and when none is left it generates the next.
//
// The fields are in the order of use: what a step touches lies side by side.
type sequence struct {
	known      int
	computed   int
	chunk      int // tokens of the step in progress
	generated  int
	reported   int // tokens that outputs told of
	limit      int // generates so many
	cached     int // tokens of the first admission's hit
	registered int // leading blocks whose hash the pool knows

	blocks []int32

	// While it is folded into Engine.steady:
	since   int64     // the step whose end its counts are of
	behind  *sequence // in its ring
	begins  int32     // which ring that is
	folded  bool
	hashing bool // has blocks to make known to the cache
	lazy    bool // will get its blocks and make them known when it leaves

	admitted bool          // was in a batch once: later hits aren't counted
	deferred bool          // was passed over since it began to wait
	gone     bool          // ended, but a cancel of it is still to be seen
	last     time.Duration // previous token

	Request

	times       Times
	leaveAt     time.Duration // when it was cancelled
	order       uint64        // of arrival
	entered     uint64        // number of its latest admission: the order of the batch
	preemptions int

	// What forecasts think that it will find cached, once one has asked.
	expected, expectedFree int
	expectedKnown          bool
}

const never = time.Duration(-1)

// bySequence is the order of priority scheduling.
func bySequence(a, b *sequence) int {
	if c := cmp.Compare(a.Priority, b.Priority); c != 0 {
		return c
	}
	return cmp.Compare(a.order, b.order)
}

// cancelled tells whether that was so at now: a late driver may be ending a step
// from before.
func (s *sequence) cancelled(now time.Duration) bool {
	return s.leaveAt != never && s.leaveAt <= now
}

// full is the number of blocks that the first n tokens fill and that have a hash.
func (s *sequence) full(n, blockSize int) int {
	return min(n/blockSize, len(s.Blocks)+len(s.OutputBlocks))
}

// hash is that of block i, less than full.
func (s *sequence) hash(i int) uint64 {
	if i < len(s.Blocks) {
		return s.Blocks[i]
	}
	return s.OutputBlocks[i-len(s.Blocks)]
}

// decodes tells whether the step generates from the previous token alone.
func (s *sequence) decodes() bool {
	return s.generated > 0 && s.chunk == 1 && s.computed == s.known-1
}

// compute ends the sequence's part of a step, and tells whether it gets a token.
func (s *sequence) compute() bool {
	scheduled := s.chunk > 0
	s.computed += s.chunk
	s.chunk = 0
	return scheduled && s.computed >= s.known
}

// gain gives it the token.
func (s *sequence) gain() {
	s.generated++
	s.known++
}

// output reports the sequence as of the token at now.
func (s *sequence) output(now time.Duration) Output {
	t := s.times
	t.Previous, t.At = s.last, now
	tokens := s.generated - s.reported
	s.reported = s.generated
	return Output{
		ID:              s.ID,
		Source:          s.Source,
		Tokens:          tokens,
		First:           tokens > 0 && s.generated == tokens,
		PromptTokens:    s.PromptTokens,
		CachedTokens:    s.cached,
		GeneratedTokens: s.generated,
		Preemptions:     s.preemptions,
		Times:           t,
	}
}
