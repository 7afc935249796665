package simengine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine/internal/kv"
)

// Engine is one engine. It is not safe for concurrent use.
//
// The times that Submit and Cancel are told must not go back, nor those of Step.
// But Step may be called late, with a time before that of the latest Submit or
// Cancel: it sees only what had come by its own time. So a driver that was held
// up can catch up without changing what happens.
type Engine struct {
	cfg  Config
	pool *kv.Pool

	rates rates

	clock time.Duration // of Submit, Cancel and Step
	began time.Duration // of the step in progress: when its computation does
	end   time.Duration // of the step in progress
	frac  int64         // ticks by which it ends later than that
	ended time.Duration // end of the last step
	done  int64         // steps that ended
	busy  bool          // a step is in progress
	work  Work          // of the step in progress

	held     []int32 // blocks of those that finished, until free
	heldEnds []int   // where in held each one's end

	arriving []*sequence // not seen by the scheduler yet, in order of arrival
	leaving  []*sequence // cancels not seen yet, in order
	waiting  queue
	running  []*sequence // in order of admission
	steady   steady      // how Advance keeps them

	// The head of the queue was found not to fit, and won't before a block is
	// freed or blockedOn becomes known.
	blocked   bool
	blockedOn uint64

	byID  map[uint64]*sequence
	spare []*sequence // for reuse, with their slices

	adapted int // requests of an adapter in byID
	order   uint64

	admissions uint64

	controls []control // sleeps and wakes not seen yet, in order
	asleep   bool
	paused   pause // how, if asleep
	clearing bool  // the cache is to be dropped when nobody holds a block

	kvEvents  []KVEvent // of the step that ended
	kvPending []KVEvent // of the step in progress

	forecast forecast // scratch

	outputs []Output
	stats   Stats // counters, as they run on
	shown   shown
}

// spareMax bounds what is kept for reuse.
const spareMax = 1024

// New returns an idle engine whose clock stands at 0. Zero fields of cfg take
// their defaults; what is out of range is an error.
func New(cfg Config) (*Engine, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	e := &Engine{
		cfg:  cfg,
		pool: kv.New(cfg.Blocks, !cfg.DisablePrefixCaching),
		byID: make(map[uint64]*sequence),
	}
	e.rates = cfg.Cost.rates()
	e.show()
	if cfg.KVEvents {
		e.pool.Evicted = e.removed
	}
	return e, nil
}

// Config returns the configuration with its defaults filled in.
func (e *Engine) Config() Config { return e.cfg }

// Submit hands a request to the engine at now. The scheduler sees it at the
// first step that begins at or after now + Cost.RequestOverhead. Errors wrap
// ErrTooLong, ErrBadRequest, ErrDuplicateID or ErrFull.
func (e *Engine) Submit(now time.Duration, r Request) error {
	if err := e.check(r); err != nil {
		return fmt.Errorf("submitting request: %w", err)
	}
	e.clock = max(e.clock, now)
	s := e.sequence()
	s.Request = r
	s.order = e.order
	e.order++
	s.known = r.PromptTokens
	s.limit = r.OutputTokens
	if room := e.cfg.MaxModelLen - r.PromptTokens; s.limit > room {
		s.limit, s.Finish = room, ReasonLength
	}
	if s.Finish == "" {
		s.Finish = ReasonStop
	}
	if len(r.Blocks) < r.PromptTokens/e.cfg.BlockSize {
		s.OutputBlocks = nil
	}
	s.last, s.leaveAt = never, never
	s.times = Times{Arrived: e.clock, Queued: e.clock + e.cfg.Cost.RequestOverhead, Scheduled: never, First: never}
	if n := len(e.arriving); n > 0 { // SetCost may have changed the overhead
		s.times.Queued = max(s.times.Queued, e.arriving[n-1].times.Queued)
	}
	e.byID[r.ID] = s
	if r.Adapter != "" {
		e.adapted++
	}
	e.arriving = append(e.arriving, s)
	return nil
}

func (e *Engine) check(r Request) error {
	switch {
	case r.PromptTokens < 1:
		return fmt.Errorf("%w: %d prompt tokens", ErrBadRequest, r.PromptTokens)
	case r.OutputTokens < 1:
		return fmt.Errorf("%w: %d output tokens", ErrBadRequest, r.OutputTokens)
	case r.PromptTokens >= e.cfg.MaxModelLen:
		return fmt.Errorf("%w: %d of %d tokens", ErrTooLong, r.PromptTokens, e.cfg.MaxModelLen)
	case len(r.Blocks) > r.PromptTokens/e.cfg.BlockSize:
		return fmt.Errorf("%w: %d blocks in %d prompt tokens", ErrBadRequest, len(r.Blocks), r.PromptTokens)
	case r.Finish != "" && r.Finish != ReasonStop && r.Finish != ReasonLength:
		return fmt.Errorf("%w: unknown reason to finish", ErrBadRequest)
	case r.Priority != 0 && !e.cfg.PriorityScheduling:
		return fmt.Errorf("%w: priority without priority scheduling", ErrBadRequest)
	case e.byID[r.ID] != nil:
		return ErrDuplicateID
	case len(e.byID) >= e.cfg.MaxRequests:
		return ErrFull
	}
	return nil
}

// sequence returns a blank one.
func (e *Engine) sequence() *sequence {
	n := len(e.spare)
	if n == 0 {
		return &sequence{}
	}
	s := e.spare[n-1]
	e.spare = e.spare[:n-1]
	return s
}

// Cancel gives a request up, wherever it is: the engine takes notice when the
// step in progress ends, frees its blocks and reports ReasonAbort. An unknown
// id is no error: the request may just have ended.
func (e *Engine) Cancel(now time.Duration, id uint64) {
	e.clock = max(e.clock, now)
	if s := e.byID[id]; s != nil && s.leaveAt == never {
		s.leaveAt = e.clock
		e.leaving = append(e.leaving, s)
	}
}

// Next tells when Step is due: when the step in progress ends, or when a
// request or a cancel waits to be seen. It is false if there is nothing to do
// until the next Submit.
func (e *Engine) Next() (at time.Duration, busy bool) {
	if e.busy {
		return e.end, true
	}
	// No step is in progress, so nothing waits, or the engine sleeps: schedule
	// always finds a request to run if there is one.
	at = math.MaxInt64
	if len(e.arriving) > 0 {
		at, busy = e.arriving[0].times.Queued, true
	}
	if len(e.leaving) > 0 {
		at, busy = min(at, e.leaving[0].leaveAt), true
	}
	if len(e.controls) > 0 {
		at, busy = min(at, e.controls[0].at), true
	}
	if !busy {
		return 0, false
	}
	return at, true
}

// Step ends the step in progress, if it is due, takes in what arrived up to
// now, and begins the next step at now. Before Next's time it does nothing. The
// outputs are those of the step that ended, in batch order, then aborts; the
// slice is valid until the next call.
func (e *Engine) Step(now time.Duration) []Output {
	e.outputs, e.kvEvents = e.outputs[:0], e.kvEvents[:0]
	if e.busy && now < e.end {
		return nil
	}
	e.settle(1)
	e.step(now, false)
	return e.outputs
}

// step is Step; when quiet it leaves out the outputs that Advance doesn't tell.
func (e *Engine) step(now time.Duration, quiet bool) {
	e.clock = max(e.clock, now)
	ended, seen := e.busy, now
	if ended {
		if e.cfg.AsyncScheduling {
			// The step to begin was composed when the one that ends began.
			seen = e.began
		}
		e.finish(now, seen, quiet)
		e.busy = false
		e.kvEvents, e.kvPending = e.kvPending, e.kvEvents
		if !e.cfg.AsyncScheduling {
			e.free()
			e.show()
		}
	}
	left := e.compose(now, seen)
	if left && !e.busy || ended && e.cfg.AsyncScheduling {
		e.show()
	}
}

// compose begins the next step at now with what was to be seen at seen, and if
// that is nothing, with what is to be seen now. It tells whether aborts were
// seen.
func (e *Engine) compose(now, seen time.Duration) (left bool) {
	for {
		left = e.leave(now, seen) || left
		left = e.control(seen) || left
		e.clear()
		e.arrive(seen)
		work, ok := e.schedule(seen)
		e.free()
		if ok {
			e.begin(now, work)
			return left
		}
		if seen == now {
			return left
		}
		seen = now
	}
}

// begin begins a step. What a step's end leaves of a nanosecond goes to the next
// one, if that follows at once.
func (e *Engine) begin(now time.Duration, work Work) {
	ticks := e.rates.step(&e.cfg.Cost, work)
	if now == e.end {
		ticks += e.frac
	}
	e.busy, e.work, e.began = true, work, now
	if e.done == 0 {
		e.began += e.cfg.Cost.FirstStep
	}
	e.end = e.began + time.Duration(ticks>>tickBits)
	e.frac = ticks & (1<<tickBits - 1)
}

// Stats returns what was true when the last step ended. A step without work,
// as after the cancel of all requests, counts as one.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Running, s.Waiting = e.shown.running, e.shown.waiting
	s.KVUsage = 1 - float64(e.shown.free)/float64(e.pool.Capacity())
	s.PrefixQueries, s.PrefixHits = e.shown.queries, e.shown.hits
	s.Preemptions, s.Aborted, s.Evictions = e.shown.preemptions, e.shown.aborted, e.shown.evictions
	return s
}

// ResetPrefixCache forgets all cached blocks, as vLLM's /reset_prefix_cache. It
// does nothing and returns false while a request holds blocks.
func (e *Engine) ResetPrefixCache() bool {
	if !e.pool.Reset() {
		return false
	}
	if e.cfg.KVEvents {
		e.kvPending = append(e.kvPending, KVEvent{Kind: AllBlocksCleared})
	}
	return true
}

// Working returns what the step in progress works on, and false if there is
// none.
func (e *Engine) Working() (Work, bool) { return e.work, e.busy }

// shown is the part of Stats that changes after the end of a step too, as it was
// at the end.
type shown struct {
	running, waiting, free                         int
	queries, hits, preemptions, aborted, evictions uint64
}

// show publishes the snapshot that ends a step.
func (e *Engine) show() {
	e.showAdapters()
	e.shown = shown{
		running: len(e.running), waiting: e.waiting.len(), free: e.pool.Free(),
		queries: e.stats.PrefixQueries, hits: e.stats.PrefixHits,
		preemptions: e.stats.Preemptions, aborted: e.stats.Aborted, evictions: e.pool.Evictions(),
	}
}

// arrive lets the scheduler see what came up to now.
func (e *Engine) arrive(now time.Duration) {
	n := 0
	for n < len(e.arriving) && e.arriving[n].times.Queued <= now {
		e.enqueue(e.arriving[n])
		n++
	}
	e.arriving = slices.Delete(e.arriving, 0, n)
}

func (e *Engine) enqueue(s *sequence) {
	if e.cfg.PriorityScheduling {
		e.blocked = false // there may be a new head
		e.waiting.insert(s, bySequence)
		return
	}
	e.waiting.pushBack(s)
}

// SetCost changes what steps take, from the next one on; an engine under Advance
// must have been brought to the time of the change. The error names what is out
// of range.
func (e *Engine) SetCost(c Cost) error {
	if err := c.validate(); err != nil {
		return err
	}
	e.cfg.Cost = c
	e.rates = c.rates()
	return nil
}

// Requests returns the ids of the requests in the engine: those in the batch in
// order of admission, then those that wait, then those on their way.
func (e *Engine) Requests() []uint64 {
	ids := make([]uint64, 0, len(e.byID))
	for _, list := range [][]*sequence{e.running, e.waiting.all(), e.arriving} {
		for _, s := range list {
			ids = append(ids, s.ID)
		}
	}
	return ids
}
