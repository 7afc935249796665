package route

import (
	"math"
	"slices"
	"sort"
)

// popularity counts how many of the last requests carry a block, and how many of
// those that wait for their first token, in a table that blocks share by hash: a
// collision makes a block look a little more popular than it is.
type popularity struct {
	counts  []tally
	shift   uint
	window  [][]uint32 // the last requests' first blocks, a ring, of each hash the upper half
	size    int        // of a full window
	next    int
	fewer   int    // requests in a row whose upstreams ask for a smaller one
	waiting int    // requests that are counted as waiting
	table   uint16 // number of the table, from 1: who waits is not taken over to a larger one

	beginnings beginnings
}

// tally is two counts in one, so that a request that comes adds to both at once: of
// the last requests that carry a block, and of those that wait.
type tally uint32

const (
	came  tally = 1
	goes        = ^tally(0) // takes came back
	waits tally = waitingMost + 1
)

func (t tally) recent() uint32  { return uint32(t % waits) }
func (t tally) waiting() uint32 { return uint32(t / waits) }

const (
	// windowPerUpstream is how many recent requests are looked at for each
	// upstream: the window that decision replays were best with.
	windowPerUpstream = 25
	windowMax         = 4096
	// popularBlocks is how many leading blocks of a prompt can be popular: what
	// many prompts share is at their beginning. It is 32,768 tokens: with a quarter
	// of that, a crowd on a document of 20,000 waited 1.6 times as long as with the
	// greedy oracle at 90 % of the knee, since most of a copy counted whole.
	popularBlocks = 512
	// countsPerRequest sizes the table, so that collisions alone make no block
	// look as if one upstream couldn't carry it: 512 blocks of 25·N requests
	// over 128 times as many places are 4 requests, a share of 0.16/N.
	countsPerRequest = 128
	// waitingPerUpstream is how many waiting requests for each upstream there are
	// taken to be at least: a few that wait for the same are no crowd. By replays
	// of flash and tenants on 4, 8 and 16 engines, 2 and 5 are within 2 % of 3.
	waitingPerUpstream = 3
	// waitingMost bounds who is counted, to what a count can hold.
	waitingMost = 1<<16 - 1
)

// place is where a block's tally is, once a request was counted.
func (p *popularity) place(hash uint64) *tally { return &p.counts[uint32(hash>>32)>>p.shift] }

// tallies reads those of the first blocks of a chain, and returns of how many: the
// processor waits for all of them together.
func (p *popularity) tallies(chain []uint64, into *[16]tally) int {
	counts, shift := p.counts, p.shift%32
	chain = chain[:min(len(chain), len(into))]
	for i, h := range chain {
		into[i] = counts[uint32(h>>32)>>shift]
	}
	return len(chain)
}

// enter counts a request among n upstreams, which waits for its first token from
// now on. It returns what leave wants to know.
func (p *popularity) enter(chain []uint64, n int) (table uint16) {
	p.resize(min(windowPerUpstream*n, windowMax))
	if p.next == len(p.window) {
		p.window = append(p.window, nil)
	} else if p.beginnings.left > 0 {
		p.beginnings.left--
	} else {
		p.beginnings.add(p.window[p.next], math.MaxUint16)
	}
	blocks := p.window[p.next]
	p.add(blocks, goes)
	blocks = blocks[:0]
	for _, h := range chain[:min(len(chain), popularBlocks)] {
		blocks = append(blocks, uint32(h>>32))
	}
	p.window[p.next] = blocks
	p.beginnings.add(blocks, 1)
	if p.next++; p.next == p.size {
		p.next = 0
	}
	p.countSome()
	if p.waiting == waitingMost {
		p.add(blocks, came)
		return 0
	}
	p.waiting++
	p.add(blocks, came+waits)
	return p.table
}

func (p *popularity) add(blocks []uint32, by tally) {
	counts, shift := p.counts, p.shift%32
	for _, b := range blocks {
		counts[b>>shift] += by
	}
}

// leave ends the waiting of a request that entered.
func (p *popularity) leave(chain []uint64, table uint16) {
	if table == 0 || table != p.table {
		return // it isn't counted, or was in another table
	}
	p.waiting--
	counts, shift := p.counts, p.shift%32
	for _, h := range chain[:min(len(chain), popularBlocks)] {
		counts[uint32(h>>32)>>shift] -= waits
	}
}

// resize follows the number of upstreams. The table grows to the most there
// were, and no further than windowMax needs: 2 MiB.
func (p *popularity) resize(size int) {
	if size < p.size {
		// Some requests have less to choose among, as those that go on from an
		// answer have. Only where all of a window's have, there are less.
		if p.fewer++; p.fewer < p.size {
			return
		}
	}
	p.fewer = 0
	if size == p.size {
		return
	}
	p.size = size
	if p.next < len(p.window) { // the oldest first
		p.window = slices.Concat(p.window[p.next:], p.window[:p.next])
	}
	if gone := len(p.window) - size; gone > 0 {
		for _, blocks := range p.window[:gone] {
			p.add(blocks, goes)
		}
		p.beginnings.forget(p.window[:gone])
		p.window = slices.Delete(p.window, 0, gone)
	}
	if p.next = len(p.window); p.next == size {
		p.next = 0
	}
	if p.beginnings.high != nil {
		p.countBeginnings()
	}
	bits := uint(10)
	for 1<<bits < size*countsPerRequest {
		bits++
	}
	if 1<<bits <= len(p.counts) {
		return
	}
	p.counts, p.shift = make([]tally, 1<<bits), 32-bits
	p.waiting = 0
	p.table++
	for _, blocks := range p.window {
		p.add(blocks, came)
	}
}

// share is the part of recent requests that carry a block. A window that
// isn't full yet counts as full: the first prompts are not popular for being
// the only ones.
func (p *popularity) share(hash uint64) float64 {
	if p.size == 0 {
		return 0
	}
	return float64(p.place(hash).recent()) / float64(p.size)
}

// demand is how many upstreams' fair part of the requests carries a block,
// beyond the one upstream that can carry it.
//
// A crowd is seen sooner by who waits than by who came: where a document is new,
// all that ask about it wait where it is prefilled, and a few dozen of them are
// there before they are many among the last requests. What one upstream can carry
// is taken off here too: where all engines are behind, as when they begin, many
// wait for every prompt, and copies are what there is no time for.
func (p *popularity) demand(t tally, upstreams float64) float64 {
	waiting := max(float64(p.waiting), waitingPerUpstream*upstreams)
	return max(float64(t.recent())/float64(p.size), float64(t.waiting())/waiting)*upstreams - 1
}

// shared is how many leading blocks of a prompt an upstream likely holds for
// another request that it works on. They take no room of their own, unlike those
// that are only left in its cache, which can't be evicted from now on.
func (r *Router) shared(q *Request, u *upstream) int {
	n := min(len(q.Chain), popularBlocks)
	here := float64(u.inFlight())
	return sort.Search(n, func(i int) bool { return r.popular.share(q.Chain[i])*here < 1 })
}
