package route

// Gateways agree on a prompt's owner by the block where what many prompts share
// ends. In the tally of popularity blocks share places, which makes a block look a
// little more popular than it is. That is little where it is a cost, but here it is
// another block, and so another owner. So with peers the same requests are counted
// once more, in a table with a place for each block that there can be, and in it at
// two places, of which the lesser count tells.

// beginnings counts how many requests of popularity's window carry a block.
type beginnings struct {
	high, low []uint16 // by the hash's high and low bits; nil until there are peers, 8 MiB at most
	shift     uint
	levels    []level // scratch
}

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

// count is how many recent requests carry a block.
func (b *beginnings) count(hash uint64) int {
	h := uint32(hash >> 32)
	return int(min(b.high[h>>b.shift], b.low[h&uint32(len(b.low)-1)]))
}

// exact is a block's tally with what is counted here.
func (p *popularity) exact(hash uint64, t tally) tally {
	return tally(p.beginnings.count(hash)) + t - tally(t.recent())
}

// exactly has the beginnings counted from now on.
func (p *popularity) exactly() {
	if p.beginnings.high == nil && p.size > 0 {
		p.countBeginnings()
	}
}

// countBeginnings counts those of the window.
func (p *popularity) countBeginnings() {
	b, bits := &p.beginnings, uint(10)
	for 1<<bits < p.size*popularBlocks {
		bits++
	}
	if 1<<bits > len(b.high) {
		b.high, b.low, b.shift = make([]uint16, 1<<bits), make([]uint16, 1<<bits), 32-bits
	} else {
		clear(b.high)
		clear(b.low)
	}
	for _, blocks := range p.window {
		b.add(blocks, 1)
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
		if next = min(most, b.count(chain[rest])); replication*float64(next)*upstreams < float64(p.size) {
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
