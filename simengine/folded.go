package simengine

// folded are the sequences of a steady batch in a forecast, which need no ghosts:
// all get a token in each step, so their sums and the steps of their ends tell
// all that there is. The others in prefill came into the batch last, or, of those
// that come out of it in the step in progress, at the same time.
type folded struct {
	decoding int
	context  int     // sum of what they know
	step     int64   // that ended last
	next     int64   // at whose end the first of them has its last token
	gone     []int32 // rings of those that have had it
}

// fold begins with the folded sequences of the engine.
func (f *forecast) fold() {
	t := &f.e.steady
	f.folded = folded{decoding: t.decoding, context: t.context, step: f.e.done, next: t.next, gone: f.folded.gone[:0]}
	f.others = f.others[:0]
	for i, s := range f.e.running {
		if !t.on || t.ends[i] == notYet {
			f.others = append(f.others, s)
		}
	}
}

// decode gives each its token of the next step, and a block to those that begin one.
func (f *forecast) decode(l *Work) {
	l.DecodeSeqs += f.folded.decoding
	l.ContextTokens += f.folded.context
	f.free -= f.begin(f.folded.step + 1)
}

// begin is how many of them begin a block in a step.
func (f *forecast) begin(step int64) int {
	if f.folded.decoding == 0 {
		return 0
	}
	t := &f.e.steady
	n, ring := t.ring(step).count(), int32(step%int64(len(t.rings)))
	for _, begins := range f.folded.gone {
		if begins == ring {
			n--
		}
	}
	return n
}

// finishFolded ends a step.
func (f *forecast) finishFolded() {
	c := &f.folded
	c.step++
	c.context += c.decoding
	if c.step < c.next || c.decoding == 0 {
		return
	}
	c.next = forever
	for i, end := range f.e.steady.ends {
		switch {
		case end == c.step:
			f.part(f.e.running[i])
		case end > c.step:
			c.next = min(c.next, end)
		}
	}
}

// part lets a sequence go that has its last token.
func (f *forecast) part(s *sequence) {
	c := &f.folded
	known := s.known + int(c.step-s.since)
	c.decoding--
	c.context -= known
	c.gone = append(c.gone, s.begins)
	f.parted = append(f.parted, ghost{held: blocksFor(known-1, f.e.cfg.BlockSize), of: s})
}

// left is in how many steps the first has its last token, at most most.
func (c *folded) left(most int) int {
	if c.decoding == 0 {
		return most
	}
	return int(min(int64(most), c.next-c.step))
}

// skip has each get so many tokens, and the blocks for the step behind.
func (f *forecast) skip(steps int) {
	c := &f.folded
	if c.decoding == 0 || steps == 0 {
		return
	}
	size := len(f.e.steady.rings)
	f.free -= c.decoding * (steps / size)
	for i := range steps % size {
		f.free -= f.begin(c.step + 2 + int64(i))
	}
	c.context += c.decoding * steps
	c.step += int64(steps)
}
