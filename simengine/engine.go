package simengine

import "time"

// Engine is one engine. It is not safe for concurrent use. The times passed to
// its methods must not go back.
type Engine struct {
	cfg Config
}

// New returns an idle engine whose clock stands at 0. Zero fields of cfg take
// their defaults; what is out of range is an error.
func New(cfg Config) (*Engine, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Engine{cfg: cfg}, nil
}

// Config returns the configuration with its defaults filled in.
func (e *Engine) Config() Config { return e.cfg }

// Submit hands a request to the engine at now. The scheduler sees it at the
// first step that begins at or after now + Cost.RequestOverhead. Errors wrap
// ErrTooLong, ErrBadRequest, ErrDuplicateID or ErrFull.
func (e *Engine) Submit(now time.Duration, r Request) error { return nil }

// Cancel gives a request up, wherever it is: the engine takes notice when the
// step in progress ends, frees its blocks and reports ReasonAbort. An unknown
// id is no error: the request may just have ended.
func (e *Engine) Cancel(now time.Duration, id uint64) {}

// Next tells when Step is due: when the step in progress ends, or when a
// request or a cancel waits to be seen. It is false if there is nothing to do
// until the next Submit.
func (e *Engine) Next() (at time.Duration, busy bool) { return 0, false }

// Step ends the step in progress, if it is due, takes in what arrived up to
// now, and begins the next step at now. Before Next's time it does nothing. The
// outputs are those of the step that ended, in batch order, then aborts; the
// slice is valid until the next call.
func (e *Engine) Step(now time.Duration) []Output { return nil }

// Stats returns what was true when the last step ended. A step without work,
// as after the cancel of all requests, counts as one.
func (e *Engine) Stats() Stats { return Stats{} }

// ResetPrefixCache forgets all cached blocks, as vLLM's /reset_prefix_cache. It
// does nothing and returns false while a request holds blocks.
func (e *Engine) ResetPrefixCache() bool { return false }
