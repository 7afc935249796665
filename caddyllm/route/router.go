package route

import (
	"math"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prefix"
)

// Options shape a Router. The zero value has the defaults.
type Options struct {
	BlockBytes  int    // prompt bytes per hash of a chain; default 256
	MemoryBytes int64  // bound of the prefix index; default 256 MiB
	Seed        uint64 // of the choice among upstreams for prompts too short to have a hash
}

const (
	defaultBlockBytes  = 256
	defaultMemoryBytes = 256 << 20

	// maxUpstreams bounds what is remembered of upstreams. Further ones are
	// chosen without being learned about.
	maxUpstreams = 10_000
	// forgetAfter is how long an upstream is remembered that is neither
	// offered nor scraped.
	forgetAfter = time.Hour
	// abandonedAfter is how old a reservation becomes. Callers release theirs;
	// one that was lost must not weigh on its upstream for ever. Of an answer
	// that really takes longer only the weight is lost.
	abandonedAfter = 2 * time.Hour

	// keptChain bounds the memory for a chain that an unused place of the slab
	// keeps, blocks.
	keptChain    = prefix.AtOnce
	maxSequences = 128
)

// Router holds what is known of the upstreams, and decides.
type Router struct {
	blockBytes  float64
	memoryBytes int64
	rng         uint64

	index     *prefix.Index
	upstreams []*upstream     // by slot, nil where one was forgotten
	slabs     []*upstreamSlab // their memory, by slot
	slots     map[string]int  // by ID
	swept     time.Duration
	clock     clock

	flights []flight // slab; a Ticket names a place and its generation
	unused  []uint32

	tokens  tokenRates
	rates   rates
	apart   apart
	ratesAt time.Duration
	popular popularity
	answers answers
	peers   peers

	steps     stepModel
	refusedAt time.Duration // when an upstream last refused after many refusals in a row

	// Scratch of one decision, kept so that deciding allocates nothing.
	held       []prefix.Holding
	candidates []candidate // of the last targets, by position
	calm       calm        // of these
	moved      positions   // those that may be more than unmoved
	stirred    []int32     // the same, in order
	told       []int32     // those of which the request tells something
	every      []int32     // all positions
	known      int         // how many of those have a page that counts
	demands    []float64   // of the popular leading blocks
	alone      float64     // how many of a prompt's blocks behind aren't popular, of those that could be
	holders    []int32     // by popular leading blocks held
	weights    []float64
	weighed    []int32 // the candidates whose cost is known
	tied       []int
	ids        []string      // of the last targets, by position
	strangers  bool          // nothing is learned about one of those, or one is there twice
	offered    time.Duration // when those were the targets
	touching   *upstream     // some of whose kept blocks are still to be touched
	toTouch    int           // of so many of kept
}

// New returns a Router that knows nothing yet.
func New(o Options) *Router {
	if o.BlockBytes <= 0 {
		o.BlockBytes = defaultBlockBytes
	}
	if o.MemoryBytes <= 0 {
		o.MemoryBytes = defaultMemoryBytes
	}
	return &Router{
		blockBytes:  float64(o.BlockBytes),
		memoryBytes: o.MemoryBytes,
		rng:         o.Seed,
		index:       prefix.NewIndex(o.MemoryBytes),
		slots:       make(map[string]int),
		flights:     make([]flight, 1), // place 0 stays unused: the zero Ticket names none
		tokens:      newTokenRates(),
		answers:     newAnswers(),
		peers:       newPeers(),
		apart:       apart{should: apartPrior},
		swept:       never,
		refusedAt:   never,
		offered:     never,
		ratesAt:     never,
		rates:       rates{priorSpeed.rate(), priorSpeed.rate()},
	}
}

// Pick chooses among targets and reserves on the chosen one, so that the next
// Pick sees it. It reports false only if there are no targets. The chain is
// read only during the call.
func (r *Router) Pick(at time.Time, q *Request, targets []Target) (Choice, bool) {
	if len(targets) == 0 {
		return Choice{}, false
	}
	now := r.clock.at(at)
	r.sweep(now)
	r.meet(now, targets, true)
	o := r.weigh(now, q, targets)
	best := r.choose(q, &o)
	c := &r.candidates[best]
	var t terms
	r.terms(now, c, &o, &t)
	return Choice{
		Index:         best,
		Ticket:        r.reserve(now, q, c, &t, &o),
		Reason:        o.reason(c),
		PromptTokens:  int(t.prompt),
		MatchedTokens: int(t.matched),
		MatchedBlocks: int(c.blocks),
		FirstToken:    seconds(t.first),
		Pulse:         c.up.pulse,
	}, true
}

// Unsettled reports whether something is left to do of long prompts. No call
// notes more than prefix.AtOnce blocks, and as many of those that run, lest those
// who wait for the Router wait for a millisecond. Callers see to the rest by
// Settle after each Pick, FirstByte, Done and Refused; what is left of more than
// 64 prompts is let be.
func (r *Router) Unsettled() bool { return r.index.Pending() || r.touching != nil }

// Settle does a part of what is left to do.
func (r *Router) Settle() {
	if r.touching != nil && !r.index.Pending() {
		r.touchKept()
		return
	}
	r.index.Work()
}

// flight finds a ticket's reservation, nil if it was released.
func (r *Router) flight(t Ticket) (*flight, uint32) {
	place := uint32(t)
	if place == 0 || int(place) >= len(r.flights) {
		return nil, 0
	}
	f := &r.flights[place]
	if f.up == nil || f.generation != uint32(t>>32) {
		return nil, 0
	}
	return f, place
}

// upstream finds what is known of an ID, and begins to know it. Beyond
// maxUpstreams it returns one that nothing is learned about.
func (r *Router) upstream(now time.Duration, id string) *upstream {
	if slot, ok := r.slots[id]; ok {
		u := r.upstreams[slot]
		u.seen = now
		return u
	}
	if len(r.slots) >= maxUpstreams {
		return r.newUpstream(id, -1, now)
	}
	slot := len(r.upstreams)
	for i, u := range r.upstreams {
		if u == nil {
			slot = i
			break
		}
	}
	u := r.newUpstream(id, slot, now)
	if slot == len(r.upstreams) {
		r.upstreams = append(r.upstreams, u)
	} else {
		r.upstreams[slot] = u
	}
	r.slots[id] = slot
	r.index.SetCap(slot, r.capacityBlocks(u))
	return u
}

// sweep forgets, once a minute, the upstreams that nobody asks for any more.
func (r *Router) sweep(now time.Duration) {
	if d := now - r.swept; d >= 0 && d < time.Minute {
		return
	}
	r.swept = now
	r.saw()
	for place := range r.flights {
		if f := &r.flights[place]; f.up != nil && now-f.sent > abandonedAfter {
			r.release(now, uint32(place), f, Cancelled)
		}
	}
	for slot, u := range r.upstreams {
		if u == nil {
			continue
		}
		if now-u.seen < forgetAfter || u.inFlight() > 0 {
			// What a block is in tokens is learned.
			r.index.SetCap(slot, r.capacityBlocks(u))
			continue
		}
		r.index.Clear(slot)
		delete(r.slots, u.id)
		r.upstreams[slot] = nil
		r.forgetTargets()
	}
}

func seconds(s float64) time.Duration {
	return time.Duration(min(max(s, 0), 3600) * float64(time.Second))
}

// textBytes is what tokens per byte can be learned from: a prompt with images,
// or with a beginning that only the engine knows, has tokens that no byte of
// text stands for, and of a list of prompts all are counted.
func textBytes(q *Request) uint32 {
	if q.ExtraTokens > 0 || q.Partial || q.Sequences > 1 {
		return 0
	}
	return uint32(min(max(q.Bytes, 0), math.MaxInt32))
}
