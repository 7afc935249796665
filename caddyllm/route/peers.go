package route

import "time"

// peers tells whether other gateways send to the same upstreams, and how many.
// They share nothing and ask nobody: what a scrape shows beyond our own
// requests is theirs.
type peers struct {
	own, foreign float64 // requests at an upstream, sums over the last pages
	pages        int

	// guess (π) is the part of a prompt that its owner turned out to hold
	// beyond what we know of; a mean over owned requests.
	guess float64
}

const (
	// peersMemory is what a page's weight falls to with each later one: a
	// minute of eight upstreams.
	peersMemory = 1 - 1.0/500
	// peersAfter is the number of pages before peers are believed in, and
	// peersFrom the load of theirs, relative to our own. Health checks and a
	// curl now and then are not a gateway.
	peersAfter = 50
	peersFrom  = 0.2
	peersMax   = 64

	// guessFirst is believed before answers tell: half of it. guessMemory is as
	// for other means over answers; with guessMin the owner still wins ties.
	guessFirst  = 0.5
	guessMemory = 0.98
	guessMin    = 0.02

	// peersHeard is the weight of the queue that peers bring, by a page of the
	// past: all gateways see the same page, and would all shun and seek the
	// same upstreams by it. 1 without peers, and 0.3 by decision replays of two
	// and four gateways.
	peersHeard = 0.3
)

func newPeers() peers { return peers{guess: guessFirst} }

func (p *peers) note(own int, foreign others) {
	p.own = p.own*peersMemory + float64(own)
	p.foreign = p.foreign*peersMemory + foreign.waiting + foreign.running
	p.pages++
}

// count is the number of gateways that seem to be, this one among them.
func (p *peers) count() float64 {
	if p.pages < peersAfter || p.foreign <= 0 || p.foreign < peersFrom*p.own {
		return 1
	}
	return min(1+p.foreign/max(p.own, 1e-3*p.foreign), peersMax)
}

// owner finds the upstream that gateways agree on for a prompt without a word:
// the first by rendezvous hashing of its first block that one upstream can
// carry. A session that another gateway has served before is likely there.
// It returns -1 where there are no peers, or nothing to agree on.
func (r *Router) owner(q *Request) int {
	if r.peers.count() <= 1 {
		return -1
	}
	if len(q.Chain) == 0 {
		return -1
	}
	all := float64(len(r.candidates))
	i := 0
	for i < min(len(q.Chain)-1, popularBlocks) && replication*r.popular.share(q.Chain[i])*all >= 1 {
		i++
	}
	best, bestScore := -1, uint64(0)
	for j := range r.candidates {
		c := &r.candidates[j]
		if score := mix(q.Chain[i] ^ c.up.hash); c.rank == sound && score >= bestScore {
			best, bestScore = j, score
		}
	}
	return best
}

// learnGuess takes in what the owner of a prompt held of it.
func (p *peers) learnGuess(f *flight, cached float64) {
	if unknown := f.prompt - f.matched; f.owned && unknown > 0 {
		held := min(max(cached-f.matched, 0)/unknown, 1)
		p.guess = max(p.guess*guessMemory+held*(1-guessMemory), guessMin)
	}
}

// noteLoad tells peers from the pages of upstreams.
func (r *Router) noteLoad(u *upstream, now time.Duration) {
	if u.known(now) {
		r.peers.note(u.inFlight(), u.brought)
	}
}
