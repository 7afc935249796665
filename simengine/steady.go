package simengine

import "math"

// steady is the batch as Advance keeps it while every sequence that decodes gets
// a token in each step: what is the same for all of them is counted once, and a
// sequence is touched only when it needs a block, fills one, or ends. Sequences
// in it are folded: their counts are those of step since and lag behind until
// they are unfolded.
//
// Steps are numbered; step e.done+1 is in progress.
type steady struct {
	on bool

	decoding   int   // folded sequences
	context    int   // sum of what they know
	hashing    int   // eager ones that have blocks to make known to the cache
	prefilling int   // the others in the batch, which keep their own counts
	next       int64 // the first step at whose end one of them has its last token

	// For each in Engine.running the step at whose end it has its last token,
	// notYet for those in prefill.
	ends []int64

	// Sequences by the step, modulo the block size, in which they begin a block.
	// Most are lazy: blocks are lent to them, and which ones, and what is in
	// them, is told when they leave. Nobody can see that, as long as nobody else
	// comes to the last block that they made known.
	rings []ring
}

const (
	notYet  = int64(-1)
	forever = int64(math.MaxInt64)
)

// ring returns the sequences that begin a block in a step.
func (t *steady) ring(step int64) *ring { return &t.rings[step%int64(len(t.rings))] }

// fold takes s in, which knows one token more than it has computed, and returns
// the step at whose end it will have its last one.
func (e *Engine) fold(s *sequence) int64 {
	t := &e.steady
	s.folded, s.since, s.chunk = true, e.done, 0
	t.decoding++
	t.context += s.known
	// A folded sequence computes token known-1 in step done+1, so it begins a
	// block when that is a multiple of the block size.
	size := int64(e.cfg.BlockSize)
	s.begins = int32(((e.done+1-int64(s.computed))%size + size) % size)
	s.hashing = e.pool.Caching() && s.registered < s.full(s.PromptTokens+s.limit-1, e.cfg.BlockSize)
	switch {
	case !s.hashing:
		s.lazy = true
	case s.registered > 0 && !e.blocked:
		s.lazy = e.pool.Tip(s.blocks[s.registered-1])
	}
	if s.lazy {
		t.rings[s.begins].lazy++
	} else {
		e.hurry(s)
	}
	end := e.done + int64(s.limit-s.generated)
	t.next = min(t.next, end)
	return end
}

// unfold lets s go and brings its counts up to date.
func (e *Engine) unfold(s *sequence) {
	t := &e.steady
	e.catchUp(s)
	e.claim(s, s.computed)
	t.decoding--
	t.context -= s.known
	if s.lazy {
		t.rings[s.begins].lazy--
	} else {
		t.rings[s.begins].remove(s)
		if s.hashing {
			t.hashing--
		}
	}
	s.folded, s.lazy, s.hashing = false, false, false
}

// hurry puts s among the eager ones.
func (e *Engine) hurry(s *sequence) {
	e.steady.rings[s.begins].insert(s)
	if s.hashing {
		e.steady.hashing++
	}
}

// claim gives a lazy sequence the blocks that were lent to it, and makes known
// what is in them, with the first tokens of it computed or about to be.
func (e *Engine) claim(s *sequence, tokens int) {
	if !s.lazy {
		return
	}
	if s.hashing {
		e.pool.Told(s.blocks[s.registered-1])
	}
	if n := blocksFor(tokens, e.cfg.BlockSize) - len(s.blocks); n > 0 {
		s.blocks = e.pool.Claim(n, s.blocks)
	}
	if s.hashing {
		e.makeFull(s, tokens)
	}
}

// awaken makes the sequence that holds a tip tell what follows it, now that
// another one is about to share it.
func (e *Engine) awaken(tip int32) {
	for _, s := range e.running {
		if s.lazy && s.hashing && s.blocks[s.registered-1] == tip {
			e.claim(s, s.computed+int(e.done-s.since)+1)
			s.lazy = false
			e.steady.rings[s.begins].lazy--
			e.hurry(s)
			return
		}
	}
}

// catchUp gives a folded sequence its tokens of the steps that ended since. Its
// previous token is of the last of these.
func (e *Engine) catchUp(s *sequence) {
	steps := int(e.done - s.since)
	s.known += steps
	s.computed += steps
	s.generated += steps
	s.since = e.done
	if steps > 0 {
		s.last = e.ended
	}
}

// foldAll begins to keep the batch this way, if it is one that fits: all of it
// is in the step in progress. It is called between steps' ends. KV events need
// each step by itself.
func (e *Engine) foldAll() {
	t := &e.steady
	if t.on || !e.busy || e.asleep || e.cfg.KVEvents {
		return
	}
	unfinished := false
	for _, s := range e.running {
		// Who doesn't come to the end of its prefill has used the budget up, so
		// nobody behind it may need any.
		if s.chunk == 0 || unfinished || e.boundPrefill(s) {
			return
		}
		unfinished = s.computed+s.chunk < s.known
	}
	if t.rings == nil {
		t.rings = make([]ring, e.cfg.BlockSize)
	}
	t.on, t.next, t.ends, t.prefilling = true, forever, t.ends[:0], 0
	for _, s := range e.running {
		end := notYet
		if s.decodes() {
			end = e.fold(s)
		} else {
			t.prefilling++
		}
		t.ends = append(t.ends, end)
	}
}

// boundPrefill tells whether s is in a prefill that may be longer than its
// chunks: one that doesn't use the budget up is nothing for a steady batch.
func (e *Engine) boundPrefill(s *sequence) bool {
	return e.cfg.LongPrefillTokens > 0 && !s.decodes()
}

// settle gives all sequences their own counts back. Chunk is what those that
// decode compute in the step in progress: 1, or 0 between two steps.
func (e *Engine) settle(chunk int) {
	t := &e.steady
	if !t.on {
		return
	}
	for _, s := range e.running {
		if s.folded {
			e.catchUp(s)
			e.claim(s, s.computed+chunk)
			s.folded, s.lazy, s.hashing, s.behind, s.chunk = false, false, false, nil, chunk
		}
	}
	clear(t.rings)
	*t = steady{ends: t.ends[:0], rings: t.rings}
}
