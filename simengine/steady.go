package simengine

import (
	"math"
	"time"
)

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
// is in the step in progress. It is called between steps' ends. Asynchronous
// scheduling and KV events need each step by itself.
func (e *Engine) foldAll() {
	t := &e.steady
	if t.on || !e.busy || e.asleep || e.cfg.KVEvents || e.cfg.AsyncScheduling {
		return
	}
	unfinished := false
	for _, s := range e.running {
		// Who doesn't come to the end of its prefill has used the budget up, so
		// nobody behind it may need any.
		if s.chunk == 0 || unfinished {
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

// turn ends the step in progress of a steady batch, at its time, and begins the
// next. Nobody leaves by his own will in it.
func (e *Engine) turn() {
	now := e.end
	t := &e.steady
	e.clock = max(e.clock, now)
	e.done++
	t.context += t.decoding
	prompt, generated := e.stats.PromptTokens, t.decoding
	if e.done == t.next || t.prefilling > 0 {
		generated = e.sweep(now)
	}
	e.counted(1, int(e.stats.PromptTokens-prompt)+generated, generated)
	e.ended = now
	e.show()
	e.arrive(now)
	if work, ok := e.carryOn(now); ok {
		e.begin(now, work)
		return
	}
	e.settle(0)
	e.busy = false
	if work, ok := e.schedule(now); ok {
		e.begin(now, work)
		e.foldAll()
	}
}

// sweep gives tokens to those of a steady batch that end or come out of their
// prefill, and returns how many tokens all got.
func (e *Engine) sweep(now time.Duration) (generated int) {
	t := &e.steady
	generated = t.decoding
	next, kept := forever, 0
	for i, end := range t.ends {
		switch {
		case end == e.done:
			e.last(e.running[i], now)
			continue
		case end == notYet:
			s := e.running[i]
			if !s.compute() {
				break
			}
			s.gain()
			generated++
			t.prefilling--
			if e.emit(s, now, true) {
				e.drop(s)
				continue
			}
			end = e.fold(s)
			next = min(next, end)
		default:
			next = min(next, end)
		}
		if kept != i || end != t.ends[i] {
			e.running[kept], t.ends[kept] = e.running[i], end
		}
		kept++
	}
	clear(e.running[kept:])
	e.running, t.ends = e.running[:kept], t.ends[:kept]
	t.next = next
	return generated
}

// last gives a folded sequence its last token and lets it go.
func (e *Engine) last(s *sequence, now time.Duration) {
	previous := s.last
	if e.done-s.since > 1 {
		previous = e.ended
	}
	e.unfold(s)
	s.last = previous
	e.emit(s, now, true)
	e.drop(s)
}

// carryOn composes the next step of a steady batch. It changes nothing and
// returns false if there is none or somebody would have to go short.
func (e *Engine) carryOn(now time.Duration) (Work, bool) {
	t := &e.steady
	budget := e.cfg.MaxNumBatchedTokens - t.decoding
	begins, fills := t.ring(e.done+1), t.ring(e.done+2)
	need := begins.count()
	if t.prefilling > 0 {
		rest := budget
		for i, s := range e.running {
			if t.ends[i] == notYet {
				s.chunk = min(s.known-s.computed, rest)
				rest -= s.chunk
				need += max(0, blocksFor(s.computed+s.chunk, e.cfg.BlockSize)-len(s.blocks))
			}
		}
	}
	if budget < 0 || need > e.pool.Free() {
		e.takeBack()
		return Work{}, false
	}
	e.takeBlocks(begins)
	e.makeKnown(fills)
	w := Work{DecodeSeqs: t.decoding, ContextTokens: t.context}
	if t.prefilling > 0 {
		for i, s := range e.running {
			if t.ends[i] == notYet {
				e.reserve(s, s.computed+s.chunk)
				budget -= s.chunk
			}
		}
	}
	if e.waiting.len() > 0 {
		old := len(e.running)
		e.admit(now, budget)
		for range e.running[old:] {
			t.ends = append(t.ends, notYet)
			t.prefilling++
		}
	}
	if t.prefilling > 0 {
		for i, s := range e.running {
			if t.ends[i] == notYet {
				w.add(s)
			}
		}
	}
	return w, len(e.running) > 0
}

// takeBack takes back the chunks that carryOn has given.
func (e *Engine) takeBack() {
	for i, s := range e.running {
		if e.steady.ends[i] == notYet {
			s.chunk = 0
		}
	}
}

// takeBlocks gives a block to each in the ring.
func (e *Engine) takeBlocks(r *ring) {
	e.pool.Lend(r.lazy)
	for s := r.first; s != nil; s = s.behind {
		s.blocks, _ = e.pool.Take(1, s.blocks)
	}
}

// makeKnown registers the block that each in the ring fills.
func (e *Engine) makeKnown(r *ring) {
	if e.steady.hashing == 0 {
		return
	}
	for s := r.first; s != nil; s = s.behind {
		// A sequence has computed all but one of the tokens of the block.
		if s.hashing && s.registered < len(s.blocks) && s.registered < len(s.Blocks)+len(s.OutputBlocks) {
			e.register(s)
		}
	}
}
