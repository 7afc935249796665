package simengine

import (
	"fmt"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine/internal/kv"
)

// Engine is one engine. It is not safe for concurrent use.
//
// The times that Submit is told must not go back, nor those of Cancel, nor those
// of Step. But Step may be called late, with a time before that of the latest
// Submit or Cancel: it sees only what had come by its own time. So a driver that
// was held up can catch up without changing what happens, and one that knows
// what will arrive can say so beforehand.
type Engine struct {
	cfg  Config
	pool *kv.Pool

	rates rates

	clock time.Duration // of Cancel and Step
	came  time.Duration // the latest arrival
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

	adapted  int      // requests of an adapter in byID
	deferred int      // waiting requests that were passed over
	adapters []string // in the step that is composed, at most MaxLoRAs

	chunkMax  int // of a prefill in the step that is composed
	watermark int // blocks

	order uint64

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
	e.watermark = int(cfg.Watermark * float64(cfg.Blocks))
	e.show()
	if cfg.KVEvents {
		e.pool.Evicted = e.removed
	}
	return e, nil
}

// Config returns the configuration with its defaults filled in.
func (e *Engine) Config() Config { return e.cfg }

// Submit hands a request to the engine at now, which may be in the future of
// Step's time. The scheduler sees it at the first step that begins at or after
// now + Cost.RequestOverhead. Errors wrap ErrTooLong, ErrBadRequest,
// ErrDuplicateID or ErrFull.
func (e *Engine) Submit(now time.Duration, r Request) error {
	if err := e.check(r); err != nil {
		return fmt.Errorf("submitting request: %w", err)
	}
	e.came = max(e.came, e.clock, now)
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
	s.times = Times{Arrived: e.came, Queued: e.came + e.cfg.Cost.RequestOverhead, Scheduled: never, First: never}
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
