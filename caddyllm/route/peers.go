package route

import "time"

// peers tells whether other gateways send to the same upstreams, and how many.
// They share nothing and ask nobody: what a scrape shows beyond our own
// requests is theirs.
type peers struct {
	own, foreign float64 // requests at an upstream, sums over the last pages
	pages        int
	seenAt       time.Duration // when a page that moved last showed any of theirs, never if none did

	each spread // how large requests are

	// What upstreams turned out to hold beyond what we know of, as a part of it;
	// means over answers.
	sharing float64 // one of those that a popular beginning is left to, of that
	owning  float64 // a prompt's owner, of a prompt without such a beginning
	ending  float64 // the same, of what is behind one
	begun   float64 // the same, of a prompt of which more is known to be anywhere
}

const (
	// peersMemory is what a page's weight falls to with each later one: a
	// minute of eight upstreams, a quarter of one while pages come more often.
	peersMemory = 1 - 1.0/500
	// peersAfter is the number of pages before peers are believed in, and
	// peersFrom the load of theirs, relative to our own. Health checks and a
	// curl now and then are not a gateway. peersSoon pages are enough if they
	// show peersMany requests.
	peersAfter = 50
	peersSoon  = 3
	peersMany  = 10
	peersFrom  = 0.2
	peersMax   = 64

	// guessFirst is believed before answers tell: half of it. guessMemory is as
	// for other means over answers; with guessMin the owner still wins ties.
	guessFirst  = 0.5
	guessMemory = 0.98
	guessMin    = 0.02

	// lookedFor is how often peers look for a prompt at its owner, where this gateway
	// has it first: a session's turns go on coming. By nine workloads with two and with
	// four gateways, twice is 1.4 and 0.6 % better in the mean than once where requests
	// are split at random, and within 0.4 % where sessions are pinned. Thrice is
	// another 1 % better, and 1 to 3 % worse in p99 with two.
	lookedFor = 2

	// companyMemory is what a page's weight in the number of requests that others
	// have at an upstream falls to with each later one.
	companyMemory = 0.95
	// companyFalls is how fast it falls at least where pages show less at once, as
	// when one moves that stood still at a high value.
	companyFalls = 0.7
	// briefest is the least that a request of others is taken to be in flight, seconds.
	briefest = 1e-3
	// apartness is how much work at an upstream costs more for all the work that
	// others send there, relative to the share of its time that theirs takes.
	// Half of it, or twice as much, are within 3 % in replays of two gateways.
	apartness = 3
)

func newPeers() peers {
	return peers{seenAt: never, sharing: guessFirst, owning: guessFirst, ending: guessFirst, begun: guessFirst}
}

func (p *peers) note(own int, foreign others) {
	p.own = p.own*peersMemory + float64(own)
	p.foreign = p.foreign*peersMemory + foreign.waiting + foreign.running
	p.pages++
}

// count is the number of gateways that seem to be, this one among them.
func (p *peers) count() float64 {
	if p.pages < peersAfter && (p.pages < peersSoon || p.foreign < peersMany) || p.foreign <= 0 || p.foreign < peersFrom*p.own {
		return 1
	}
	return min(1+p.foreign/max(p.own, 1e-3*p.foreign), peersMax)
}

// noteLoad tells peers from the pages of upstreams. The first of one may show what was
// sent before this gateway began, and only makes the second come sooner.
func (r *Router) noteLoad(u *upstream, now time.Duration, second bool) {
	if !u.known(now) {
		return
	}
	if second {
		r.peers.note(u.inFlight(), u.brought)
	}
	if shown := u.foreign; u.still == 0 && shown.waiting+shown.running >= 1 {
		r.peers.seenAt = now
	}
	// A page is of a moment that we know but roughly, and shows less than we have
	// now as often as more. A mean needs no more.
	own := float64(u.inFlight())
	all := min(u.load.Waiting.Value+u.load.Running.Value, maxForeign)
	u.theirs += (1 - companyMemory) * (all - own - u.theirs)
	u.theirsMost = max(all, u.theirsMost*companyFalls)
}

const (
	// soonerFor is for how long after a page that showed requests of others more
	// of them are expected.
	soonerFor = 10 * time.Second
	// sooner is how many times as often pages are asked for meanwhile, and soonest
	// the interval below which that isn't done. Each 100 ms isn't better than each
	// 250 ms in replays of two gateways.
	sooner  = 4
	soonest = 250 * time.Millisecond
	// apiece is the time that each upstream's page has to itself meanwhile, so that
	// with hundreds of upstreams pages aren't all that a gateway does: 200 in a second.
	apiece = 5 * time.Millisecond
)

// ScrapeEvery is the time until an upstream's next scrape, where every is what it is
// for one gateway alone. It is less while pages show requests of others: then they
// tell what nothing else does. One that stands still shows nothing.
func (r *Router) ScrapeEvery(at time.Time, every time.Duration) time.Duration {
	if since := r.clock.at(at) - r.peers.seenAt; since < 0 || since >= soonerFor {
		return every
	}
	return max(every/sooner, min(every, max(soonest, apiece*time.Duration(len(r.slots)))))
}

// company is what peers have at an upstream.
type company struct {
	queued  float64 // work before a request sent now, prefill tokens
	running float64 // requests
	busy    float64 // part of the time that goes to their prefills, 0 to 1
	coming  float64 // what each token of ours, or theirs, costs for those that they will send, seconds
}

// others is how many requests of others an upstream has, a mean over pages.
func (u *upstream) others() float64 { return min(max(u.theirs, 0), u.theirsMost) }

// foreknow finds what peers have at the candidates, and which of them they would
// send the prompt to.
func (r *Router) foreknow(now time.Duration, q *Request, o *outlook) {
	r.homes(q, o)
	known, running := 0.0, 0.0
	for i := range r.candidates {
		if c := &r.candidates[i]; c.known {
			known++
			running += c.up.others()
		}
	}
	known = max(known, 1)
	// Each request of theirs is as much work as one of ours, and as long in flight: so
	// much comes in a second for each that is. Means over answers stay what they are
	// while none of ours come.
	per := r.answers.work / max(r.answers.residence, briefest)
	// Gateways that find at owners what others sent there do better to meet there:
	// where a third of it is found, they don't settle apart. A half is 2 % worse where
	// requests are split at random, a fifth 1 % where sessions are pinned.
	found := *r.peers.owned(o.popular, false)
	settle := max(1-3*found, 0)
	heard, sum := 0.0, 0.0
	for i := range r.candidates {
		c := &r.candidates[i]
		u := c.up
		theirs := company{queued: -1, running: running / known}
		if c.known {
			theirs.running = u.others()
		}
		arriving := min(per*theirs.running, u.rate)
		theirs.busy = arriving / u.rate
		theirs.coming = apartness * settle * theirs.busy / u.rate
		if work, ok := u.overhear(now, arriving, &r.peers.each); ok {
			theirs.queued = work
			sum += work
			heard++
		}
		u.company = theirs
	}
	// Where nothing is heard, since none of ours is there, much of theirs is if they
	// settled there, and as much as elsewhere if they didn't.
	mean, standing := sum/max(heard, 1), 0.0
	if heard < float64(len(r.candidates)) {
		standing = r.peers.each.standing()
	}
	for i := range r.candidates {
		c := &r.candidates[i]
		waiting, theirs := o.unknown.waiting, &c.up.company
		if c.known {
			waiting = c.up.brought.waiting
		}
		if theirs.queued < 0 {
			theirs.queued = mean + settle*(standing*theirs.busy-mean)
		}
		theirs.queued = max(theirs.queued, waiting*r.answers.work)
	}
}
