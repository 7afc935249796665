package route

import (
	"time"

	"github.com/cespare/xxhash/v2"
)

// upstream is what is known of one. Here is what decisions read, and first, in
// one line of the processor's caches, what each decision reads of each upstream;
// upstreams lie together in slabs, since with hundreds of them reading it is what
// takes time.
type upstream struct {
	pace      float64       // seconds per prefill token
	slot      int           // in the index; -1: nothing is learned
	pageFrom  time.Duration // the time in which the last page counts
	pageCount time.Duration // its end: pageUntil, or frozen if that is earlier
	queue     []uint32      // own requests without a first token, as sent
	failures  int32         // in a row
	asleep    bool          // the last page says so
	stalled   bool          // has work, and nothing comes of it

	progress         // at its last change
	length   float64 // of the step that was in progress at that time, prefill tokens
	behind   float64 // of the queue's work, what is behind that step
	decoding int     // sequences of own requests with a first token
	pulse    *Pulse
	at       int32 // its place in the last targets
	blocks   int32 // leading blocks of the last prompt that it holds

	queued    float64       // work of queue
	headSince time.Duration // when the first of queue came to its turn
	begun     int           // of queue: those in the step in progress, or in several if they are long
	begunWork float64       // theirs, without what each request costs beyond its tokens
	begunAt   time.Duration // when the step began
	counted   int64         // of pulse's steps, those that progress has counted
	context   float64       // tokens that those that decode look at, as of progress

	brought   others        // by the last two pages
	capacity  float64       // KV tokens, 0 if unknown: as its page tells, or more
	used      float64       // KV tokens in use, by the last page
	roomAhead float64       // KV tokens that the queue will take
	room      float64       // KV tokens of own requests with a first token
	rate      float64       // prefill tokens per second, as last judged
	pageUntil time.Duration // until then the last page is new enough

	frozen time.Duration // since when the page claims work and didn't move for too long, else -never
	seen   time.Duration // when it was last offered or scraped; later if it is among the last targets
	*history
	calm *calm
	hash uint64    // of id, for ties
	_    [3]uint64 // whole lines
}

// nowhere is the place of an upstream that isn't among the last targets.
const nowhere = -1

// history is what else is known of an upstream.
type history struct {
	id          string
	waiting     int // sequences of the queue
	answering   int // own requests with a first token
	popular     *popularity
	stepLengths *stepModel
	puts        uint64 // blocks that came into the model of its cache, or were touched for those that run
	kept        []kept // own streams by when their blocks were touched, and some that ended
	due         int    // mates of the last first token that haven't come

	following bool       // the step in progress was heard to begin
	sample    stepSample // a step from which nobody has had a first token yet

	unseen    uint32 // work whose first token couldn't be seen, tokens, modulo 2³²
	speed     speed
	lastToken time.Duration // the last first token of a stream
	atToken   uint32        // unseen at that time

	failedAt  time.Duration
	refusals  int           // in a row, to refusedAfter
	refusedAt time.Duration // when it last refused after so many, never if it served since
	suspended time.Duration // until then it is a last resort
	probed    time.Duration // when one request was last sent to see, never if none since
	life      time.Duration // the last sign that it computes
	recovered time.Duration // when it was last no longer stalled

	load        Load
	scraped     time.Duration // never, before the first page
	still       int           // pages in a row that are like the one before
	interval    time.Duration // between scrapes, as observed
	peakPrefill int           // own sequences without first token, most since the last scrape
	peakTotal   int
	foreign     others        // of the last scrape alone
	paged       bool          // there was one
	movedAt     time.Duration // when the page last changed

	theirs     float64       // requests of others in flight, a mean over pages; below 0 says that there are none
	theirsMost float64       // as far as the last pages show that many
	company    company       // of peers, as last looked at
	ranFrom    time.Duration // the run of steps with a prefill that ran is of
	ran        float64       // own work whose first token came in it, prefill tokens

	gauge  gauge
	alone  float64 // KV tokens of own streams that none of the others shares
	factor float64 // of capacity, from what answers told
	audit  audit
	told   [forms]int8 // silences that still are answers, by form of usage
}

// upstreamSlab is memory of upstreams that lie together: of so many that Go lets
// them begin with a line of the caches.
type upstreamSlab [slabUpstreams]upstream

const slabUpstreams = 128

func (r *Router) newUpstream(id string, slot int, now time.Duration) *upstream {
	u := new(upstream) // used once
	if slot >= 0 {
		for slot >= len(r.slabs)*slabUpstreams {
			r.slabs = append(r.slabs, new(upstreamSlab))
		}
		u = &r.slabs[slot/slabUpstreams][slot%slabUpstreams]
	}
	*u = upstream{
		slot: slot, hash: xxhash.Sum64String(id), seen: now, pageFrom: -never, pageUntil: never, pageCount: never, frozen: -never,
		headSince: never, pulse: &Pulse{epoch: r.clock.epoch}, at: nowhere, calm: &r.calm,
		history: &history{
			id: id, popular: &r.popular, stepLengths: &r.steps, factor: 1, lastToken: never, failedAt: never, refusedAt: never, suspended: never,
			probed: never, life: never, recovered: never, scraped: never, movedAt: never,
		},
	}
	u.setRate(r.rates.best)
	return u
}

func (u *upstream) setRate(tokens float64) { u.rate, u.pace = tokens, 1/tokens }

// inFlight is the number of own sequences, which is what a page counts.
func (u *upstream) inFlight() int { return u.waiting + u.decoding }

func (u *upstream) enqueue(now time.Duration, place uint32, f *flight) {
	if len(u.queue) == 0 {
		u.headSince = now
	}
	u.stir()
	idle := u.inFlight() == 0
	if idle && !u.stalled {
		u.life = now // an idle engine has nothing to show
	}
	u.queue = append(u.queue, place)
	if idle {
		u.begun, u.begunWork, u.begunAt = 1, tokensOf(f), now+lead
		// Who comes in the same instant comes too late for its step.
		u.progress.at, u.progress.done, u.progress.inStep = now+lead, 0, min(missedOf(f), stepBudget)
		u.following, u.context = false, 0
	}
	u.waiting += int(f.sequences)
	u.queued += f.work
	u.roomAhead += f.room
	u.peakPrefill = max(u.peakPrefill, u.waiting)
	u.peakTotal = max(u.peakTotal, u.inFlight())
}

// decode moves a request, and those before it whose first tokens can't be
// seen, from the queue to the batch: engines begin requests as they came.
func (u *upstream) decode(now time.Duration, place uint32, flights []flight) {
	u.stir()
	kept := u.queue[:0]
	passed := false
	for _, p := range u.queue {
		f := &flights[p]
		if p == place || !passed && !f.stream {
			u.begin(f)
			u.progress.done -= missedOf(f)
			if p == place {
				passed = true
			} else {
				u.unseen += uint32(min(f.work, maxPrompt))
			}
			continue
		}
		kept = append(kept, p)
	}
	u.queue = kept
	u.headSince = now
	u.settle()
	u.followed(flights)
	u.begun, u.begunWork = 0, 0
	u.join(now, flights)
}

// begin counts a request as decoding; its caller takes it from the queue.
func (u *upstream) begin(f *flight) {
	f.decoding, f.steps = true, uint32(u.progress.steps)
	u.context += f.prompt
	u.popular.leave(f.chain, f.counted)
	u.answering++
	u.decoding += int(f.sequences)
	u.waiting -= int(f.sequences)
	u.queued -= f.work
	u.roomAhead -= f.room
	u.room += f.room
	u.noteRan(f.work)
}

// leave takes a request out of queue or batch.
func (u *upstream) leave(now time.Duration, place uint32, f *flight, flights []flight) {
	if f.decoding {
		u.context = max(u.context-f.prompt-float64(uint32(u.progress.steps)-f.steps)*float64(f.sequences), 0)
		u.room -= f.room
		u.alone -= float64(f.alone)
		u.decoding -= int(f.sequences)
		u.answering--
		u.settle()
		u.remember(flights)
		return
	}
	for i, p := range u.queue {
		if p == place {
			u.stir()
			u.popular.leave(f.chain, f.counted)
			u.queue = append(u.queue[:i], u.queue[i+1:]...)
			u.waiting -= int(f.sequences)
			u.queued -= f.work
			u.roomAhead -= f.room
			if i == 0 {
				u.headSince = now
				u.progress.done -= missedOf(f)
			}
			u.followed(flights)
			if i < u.begun {
				u.begun--
				u.begunWork -= tokensOf(f)
			}
			break
		}
	}
	u.settle()
}

// quiet is until when time alone changes nothing of a queue: its first is to be seen
// when it begins, and is begun, and it is too early to say that nothing comes of it.
func (u *upstream) quiet(flights []flight) time.Duration {
	if u.begun == 0 || !flights[u.queue[0]].stream {
		return never
	}
	return u.life + stallMin
}

// settle ends the drift of sums of floats where they are known to be zero.
func (u *upstream) settle() {
	if len(u.queue) == 0 {
		u.queued, u.roomAhead, u.begunWork = 0, 0, 0
	}
	if u.decoding == 0 {
		u.room, u.alone, u.context = 0, 0, 0
	}
}

// drain takes those at the queue's head as begun whose first token can't be
// seen and whose work must be done by now.
func (u *upstream) drain(now time.Duration, rate float64, flights []flight) {
	if u.headSince > now {
		u.headSince = now // the clock stepped back
	}
	for len(u.queue) > 0 {
		f := &flights[u.queue[0]]
		if f.stream {
			return
		}
		took := time.Duration(f.work / rate * float64(time.Second))
		if now-u.headSince < took {
			return
		}
		began := u.headSince + took
		u.begin(f)
		u.unseen += uint32(min(f.work, maxPrompt))
		u.queue = append(u.queue[:0], u.queue[1:]...)
		u.progress.done -= missedOf(f)
		u.headSince = began
		if u.begun > 0 {
			u.begun--
			u.begunWork -= tokensOf(f)
		}
		u.settle()
		u.followed(flights)
	}
}
