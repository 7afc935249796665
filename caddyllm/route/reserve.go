package route

import "time"

// flight is one reservation. Decisions read flights that others have to wait for,
// all over the slab, so a flight is two lines of the processor's caches, the first
// of which has what they read.
type flight struct {
	up         *upstream
	generation uint32
	counted    uint16   // among those that wait, in the table of that number
	sequences  uint8    // answers asked for, which engines count one by one
	begun      bool     // more than what is popular of it was known to be anywhere
	chain      []uint64 // own copy, its memory reused
	work       float64  // S, prefill tokens
	sent       time.Duration
	blocks     int32 // leading blocks of chain that were held
	stream     bool
	decoding   bool
	shares     bool // sent to one of those that peers agree on for what is popular of it
	owned      bool // sent to the owner that peers agree on

	room    float64 // KV tokens that it takes: the prompt's that it doesn't share, and the answer's
	shared  float32 // of the prompt, by what is popular, tokens
	unseen  uint32  // its upstream's when it was sent
	alone   float32 // of room, what it shares with no stream there, once it has a first token
	steps   uint32  // of its upstream that had ended when its first token came
	prompt  float64 // tokens, estimate
	matched float64 // tokens, estimate
	text    uint32  // bytes of the prompt that tokens are estimated from
	unread  bool    // the engine doesn't look for it in its cache
	later   bool    // its answer comes before the work
	model   uint64
	popular float64 // tokens that it begins with and one upstream can't carry; 0 without peers
}

// reserve notes the request on the chosen upstream.
func (r *Router) reserve(now time.Duration, q *Request, c *candidate, t *terms, o *outlook) Ticket {
	place := uint32(len(r.flights))
	if n := len(r.unused); n > 0 {
		place, r.unused = r.unused[n-1], r.unused[:n-1]
	} else {
		r.flights = append(r.flights, flight{})
	}
	f := &r.flights[place]
	u := c.up
	shared := min(t.matched, o.block*float64(r.shared(q, u)))
	*f = flight{
		generation: f.generation + 1,
		up:         u,
		chain:      append(f.chain[:0], q.Chain...),
		work:       t.work,
		room:       t.prompt - shared + r.answer(q),
		shared:     float32(shared),
		unseen:     u.unseen,
		blocks:     r.heldBy(u, q, c),
		prompt:     t.prompt,
		matched:    t.matched,
		text:       textBytes(q),
		unread:     q.Unread,
		later:      q.Background && !q.Stream,
		model:      q.Model,
		stream:     q.Stream,
		sequences:  uint8(min(max(q.Sequences, 1), maxSequences)),
		shares:     c.shares,
		owned:      c.owned,
		popular:    o.popular,
		begun:      o.begun,
		sent:       now,
	}
	if !q.Unread {
		// Who gains nothing by a copy is no reason to make one.
		f.counted = r.popular.enter(q.Chain, len(r.candidates))
	}
	if c.probe {
		u.probed = now
	}
	if u.slot >= 0 {
		r.index.Put(u.slot, f.chain)
		u.puts += uint64(len(q.Chain) - int(c.blocks))
	}
	r.follow(now, u, false)
	u.enqueue(now, place, f)
	u.remember(r.flights)
	return Ticket(uint64(f.generation)<<32 | uint64(place))
}

// heldBy is how many leading blocks of a request the chosen upstream holds, also
// where the engine doesn't look for them: if it fails, they must stay.
func (r *Router) heldBy(u *upstream, q *Request, c *candidate) int32 {
	if !q.Unread {
		return c.blocks
	}
	r.match(q.Chain)
	return u.blocks
}

// answer is the expected length of a request's answers, tokens.
func (r *Router) answer(q *Request) float64 {
	each := r.answers.tokens
	if q.MaxTokens > 0 {
		each = min(each, float64(q.MaxTokens))
	}
	return each * float64(min(max(q.Sequences, 1), maxSequences))
}

// FirstByte tells that the first byte of a good answer's body has come. For a
// stream that is its first token.
func (r *Router) FirstByte(at time.Time, t Ticket) {
	now := r.clock.at(at)
	f, place := r.flight(t)
	if f == nil || f.decoding || !f.stream {
		return
	}
	u := f.up
	u.well(now, f.sent)
	if u.slot >= 0 {
		r.index.Put(u.slot, f.chain)
	}
	began := u.begunAt
	u.pulse.mark(int64(now))
	r.follow(now, u, true)
	mates := u.mates(r.flights)
	u.decode(now, place, r.flights)
	r.keep(u, place, f)
	r.learnRate(now, f, began, mates)
}

// Done releases a reservation; it may be called again. usage is nil where the
// answer told none; where silence about cached tokens means none, Done says so
// in it.
func (r *Router) Done(at time.Time, t Ticket, end End, usage *Usage) {
	now := r.clock.at(at)
	f, place := r.flight(t)
	if f == nil {
		return
	}
	u := f.up
	switch end {
	case Completed:
		u.well(now, f.sent)
		if usage != nil || !f.later {
			r.learnAnswer(now, f, usage)
		}
	case Failed:
		u.fail(now)
	case Rejected:
		// A server refuses a bad request though the engine behind it is dead:
		// this clears no failure. But a probe that told nothing needn't be
		// waited for.
		u.probed = never
		r.refused(now, u)
	case Cancelled:
	}
	r.release(now, place, f, end)
}

// release ends a reservation.
func (r *Router) release(now time.Duration, place uint32, f *flight, end End) {
	u := f.up
	r.follow(now, u, false)
	u.leave(now, place, f, r.flights)
	switch {
	case u.slot < 0:
	case end == Completed || f.decoding:
		// Whatever was claimed of the prompt before, it is cached now, and its
		// blocks age from here.
		r.index.Put(u.slot, f.chain)
	default:
		// Nothing says that it computed any of the prompt.
		r.index.Drop(u.slot, f.chain, int(f.blocks))
	}
	f.up = nil
	if cap(f.chain) > keptChain {
		f.chain = nil // and the index may still need it
	}
	r.unused = append(r.unused, place)
}

// Refused releases a reservation whose upstream wants no more work for now, as
// it says with status 429, or 503 and a time. It is left alone for wait, brought
// into bounds: at least as long as after one failure and at most a minute. Its
// other requests go on, and their answers don't shorten that.
func (r *Router) Refused(at time.Time, t Ticket, wait time.Duration) {
	f, _ := r.flight(t)
	if f == nil {
		return
	}
	u := f.up
	r.Done(at, t, Failed, nil)
	u.refuse(r.clock.at(at), wait)
}
