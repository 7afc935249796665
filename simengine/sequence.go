package simengine

import (
	"cmp"
	"time"
)

// sequence is a request in the engine. A token is known once it is in the
// prompt or was generated, and computed once its keys and values are in a
// block: at each step a sequence computes the tokens that are known but not
// computed, and when none is left it generates the next.
type sequence struct {
	Request
	order uint64 // of arrival

	known     int
	computed  int
	chunk     int // tokens of the step in progress
	generated int
	limit     int // generates so many
	cached    int // tokens of the first admission's hit

	preemptions int

	blocks     []int32
	registered int // leading blocks whose hash the pool knows

	times    Times
	last     time.Duration // previous token
	leaveAt  time.Duration // when it was cancelled
	admitted bool          // was in a batch once: later hits aren't counted
	gone     bool          // ended, but a cancel of it is still to be seen

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

// output reports the sequence as of the token at now.
func (s *sequence) output(now time.Duration, tokens int) Output {
	t := s.times
	t.Previous, t.At = s.last, now
	return Output{
		ID:              s.ID,
		Tokens:          tokens,
		First:           tokens > 0 && s.generated == tokens,
		PromptTokens:    s.PromptTokens,
		CachedTokens:    s.cached,
		GeneratedTokens: s.generated,
		Preemptions:     s.preemptions,
		Times:           t,
	}
}
