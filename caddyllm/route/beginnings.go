package route

import "math"

// Gateways agree on a prompt's owner by the block where what many prompts share
// ends. In the tally of popularity blocks share places, which makes a block look a
// little more popular than it is. Alone that is a little of a cost, but here it is
// another block, and so another owner. So with peers the same requests are counted
// once more, in a table with a place for each block that there can be, and in it at
// two places, of which the lesser count tells. Where it is there, demand too is told
// from it.

// beginnings counts how many requests of popularity's window carry a block.
//
// Counting a whole window takes up to a tenth of a second, so it is done in pieces:
// from the last of its requests back to the first, while others come and go. Until
// then the tally of popularity tells.
type beginnings struct {
	high, low []uint16 // by the hash's high and low bits; nil until there are peers, 8 MiB at most
	shift     uint
	left      int        // the first of the window, that aren't counted yet
	gone      [][]uint32 // those that are, though the window has become too small for them
	levels    []level    // scratch
}

// beginningsAtOnce is how many blocks a request that comes sees to at most beyond
// its own and those of the one whose place it takes, each at two places that are in
// no cache: a two-thousandth of what a window of 4,096 requests can have. That is
// counted when a third as many have come.
const beginningsAtOnce = 2 * popularBlocks

// level is where fewer recent requests begin to carry a chain's blocks.
type level struct{ from, carried int }

// branching is how many of those that carry a block carry the next one at most, as
// a part, where what many prompts share ends: the turns of a session become fewer
// one by one, as each is longer than the one before.
const branching = 0.5

func (b *beginnings) add(blocks []uint32, by uint16) {
	if b.high == nil {
		return
	}
	mask := uint32(len(b.low) - 1)
	for _, h := range blocks {
		b.high[h>>b.shift] += by
		b.low[h&mask] += by
	}
}

// count is how many recent requests carry a block, once all are counted.
func (b *beginnings) count(hash uint64) int {
	h := uint32(hash >> 32)
	return int(min(b.high[h>>b.shift], b.low[h&uint32(len(b.low)-1)]))
}

// carried is how many recent requests carry a block, as well as it is known by now.
func (p *popularity) carried(hash uint64) int {
	b := &p.beginnings
	if b.left == 0 && len(b.gone) == 0 {
		return b.count(hash)
	}
	tallied := int(p.place(hash).recent())
	if b.left > 0 {
		return tallied
	}
	return min(b.count(hash), tallied) // both are too many, and that by different ones
}

// exact is a block's tally with what is counted here.
func (p *popularity) exact(hash uint64, t tally) tally {
	return tally(p.carried(hash)) + t - tally(t.recent())
}

// exactly has the beginnings counted from now on.
func (p *popularity) exactly() {
	if p.beginnings.high == nil && p.size > 0 {
		p.countBeginnings()
		p.countSome()
	}
}

// countBeginnings begins to count those of the window, where the table isn't large
// enough for it.
func (p *popularity) countBeginnings() {
	b, bits := &p.beginnings, uint(10)
	for 1<<bits < p.size*popularBlocks {
		bits++
	}
	if 1<<bits > len(b.high) {
		b.high, b.low, b.shift = make([]uint16, 1<<bits), make([]uint16, 1<<bits), 32-bits
		b.left, b.gone = len(p.window), nil
	}
}

// countSome counts some of those that are left to count.
func (p *popularity) countSome() {
	b := &p.beginnings
	first := 0
	if len(p.window) == p.size {
		first = p.next
	}
	for done := 0; done <= beginningsAtOnce-popularBlocks; {
		if n := len(b.gone); n > 0 {
			b.add(b.gone[n-1], math.MaxUint16)
			done += len(b.gone[n-1])
			b.gone[n-1] = nil
			if b.gone = b.gone[:n-1]; n == 1 {
				b.gone = nil
			}
		} else if b.left > 0 {
			b.left--
			blocks := p.window[(first+b.left)%len(p.window)]
			b.add(blocks, 1)
			done += len(blocks)
		} else {
			return
		}
	}
}

// forget is told of the first requests of the window, in order, when they leave it
// together.
func (b *beginnings) forget(first [][]uint32) {
	uncounted := min(b.left, len(first))
	b.left -= uncounted
	if b.high != nil {
		b.gone = append(b.gone, first[uncounted:]...)
	}
}

// beginning is how many leading blocks of a prompt many others share, among so many
// upstreams: more than one of these could carry, and followed by different ones.
// What one session's turns begin with doesn't count, however many of the last
// requests these are. carried is how many requests share it, and begin the first
// block of it that fewer than twice as many carry.
func (p *popularity) beginning(chain []uint64, upstreams float64) (rest, begin, carried int) {
	b := &p.beginnings
	if b.high == nil {
		return 0, 0, 0
	}
	b.levels = b.levels[:0]
	n := min(len(chain), popularBlocks)
	most, next := windowMax+1, 0
	for ; rest < n; rest++ {
		// Who carries a block carries those before it.
		if next = min(most, p.carried(chain[rest])); replication*float64(next)*upstreams < float64(p.size) {
			break
		}
		if next < most {
			b.levels = append(b.levels, level{rest, next})
			most = next
		}
	}
	if rest == n && n == len(chain) {
		// The very same prompt comes again and again, as no session's does.
		rest, next = n-1, 0
	}
	for k := len(b.levels) - 1; k >= 0; k-- {
		l := b.levels[k]
		if float64(next) <= branching*float64(l.carried) {
			for k > 0 && b.levels[k-1].carried < 2*l.carried {
				k--
			}
			return rest, b.levels[k].from, l.carried
		}
		rest, next = l.from, l.carried
	}
	return 0, 0, 0
}
