// Package prefix has the hash chain that prompts are cut into, and the bounded
// index of which upstream holds which block of it.
package prefix

import "unsafe"

// Index remembers, for each upstream, the blocks that its prefix cache probably
// holds: a table of (block hash, upstream) entries with a least recently used
// list for each upstream. All upstreams share one table, in which all of a group
// of 64 that hold the same block are found at once.
//
// A block's hash stands for all blocks before it, and whoever computed the
// block has those. Put keeps that true of what is remembered: earlier blocks
// are always used later than those behind them, and so evicted later.
//
// The table grows by linear hashing: an insert splits at most two buckets, and
// no operation ever moves the whole. An entry takes 20 bytes and its bucket 4;
// a block that many upstreams hold takes another 24 for each 64 of them. An
// Index is not safe for concurrent use.
type Index struct {
	entries []*[slabSize]entry // slabs, so that growing moves nothing
	unused  uint32             // list of free entries, by chain
	next    uint32             // the first entry that was never used
	limit   int
	taken   int // entries in use, sets among them
	sets    int

	buckets []*[slabSize]uint32 // slabs of heads of chains
	level   uint                // buckets are 1<<level plus those split in this round
	split   uint32              // the next bucket to split

	lists []list // by row
	hand  int    // where makeRoom looked last

	rows    []int     // by upstream: its list
	owners  []int32   // by row: whose it is, or nobody's
	cleared []int     // rows that nobody has any more, and that have entries
	spare   []int     // rows that nobody has, and that have none
	found   []Holding // what Match returned last
	atOnce  int       // entries that Clear removes at once
	piece   int       // blocks that Put or Drop see to at once
	jobs    []job     // what they put off

	evicted Evictions
	read    uint32 // by warm, for nobody
}

// Evictions counts the entries that gave way to others, by the bound that they
// gave way to.
type Evictions struct {
	Cap    uint64 // their upstream's: it evicts these blocks too
	Memory uint64 // that of the index: the upstream may still hold these
}

// MaxUpstreams bounds the numbers that stand for upstreams.
const MaxUpstreams = 1 << 14

// Removing an entry takes less than a microsecond, so no call is held up for
// more than a millisecond by what it has to forget: what is more goes bit by
// bit, as blocks are put.
const (
	forgetAtOnce = 1 << 10 // entries, by one SetCap or Clear
	forgetByPut  = 1 << 7  // entries, by one Put
)

type list struct {
	newest, oldest uint32
	len, cap       int

	// The blocks that were put last are the newest, as long as there are so many:
	// entries go from the oldest on, or by Drop.
	lastPut  int    // how many
	lastHash uint64 // of the last of them, which stands for all before it
}

// NewIndex returns an index that takes at most the given bytes, and at least
// one slab.
func NewIndex(bytes int64) *Index {
	x := &Index{
		limit: int(min(max(bytes/entryBytes, slabSize), 1<<31)),
		next:  1,
		level: firstLevel,

		atOnce: forgetAtOnce,
		piece:  AtOnce,
	}
	x.entries = append(x.entries, new([slabSize]entry)) // entry 0 can be read
	x.addBuckets(1 << firstLevel)
	return x
}

// Len is the number of entries of all upstreams.
func (x *Index) Len() int {
	n := x.taken - x.sets
	for _, row := range x.cleared {
		n -= x.lists[row].len
	}
	return n
}

// Bytes is the memory that the index has taken; it never gives any back.
func (x *Index) Bytes() int64 {
	return int64(len(x.entries))*slabSize*int64(unsafe.Sizeof(entry{})) + int64(len(x.buckets))*slabSize*4
}

// Evicted tells how many entries gave way so far.
func (x *Index) Evicted() Evictions { return x.evicted }

// Held is the number of an upstream's entries.
func (x *Index) Held(upstream int) int {
	if upstream < 0 || upstream >= len(x.rows) {
		return 0
	}
	return x.lists[x.rows[upstream]].len
}

// SetCap bounds an upstream's entries, and forgets the least recently used
// beyond the bound. The upstream is below MaxUpstreams.
func (x *Index) SetCap(upstream, blocks int) {
	for upstream >= len(x.rows) {
		x.rows = append(x.rows, x.newRow(len(x.rows)))
	}
	l := &x.lists[x.rows[upstream]]
	l.cap = max(blocks, 0)
	x.fit(l, l.cap, forgetAtOnce)
}

// nobody owns a row that was cleared.
const nobody = -1

// newRow finds a list that nobody has, for an upstream. There is one, since
// upstreams are fewer than rows can be.
func (x *Index) newRow(upstream int) int {
	for len(x.spare) == 0 && len(x.lists) == MaxUpstreams {
		x.forget()
	}
	if n := len(x.spare); n > 0 {
		row := x.spare[n-1]
		x.spare = x.spare[:n-1]
		x.owners[row] = int32(upstream)
		return row
	}
	x.lists, x.owners = append(x.lists, list{}), append(x.owners, int32(upstream))
	return len(x.lists) - 1
}

// fit brings an upstream nearer to n entries, by at most so many.
func (x *Index) fit(l *list, n, most int) {
	for ; l.len > n && most > 0; most-- {
		x.remove(l.oldest)
		x.evicted.Cap++
	}
}

// Clear forgets all that an upstream holds.
func (x *Index) Clear(upstream int) {
	if upstream >= len(x.rows) {
		return
	}
	x.cancel(upstream, nil)
	row := x.rows[upstream]
	if x.lists[row].len > x.atOnce && (len(x.spare) > 0 || len(x.lists) < MaxUpstreams) {
		// It gets a list with nothing in it.
		x.owners[row] = nobody
		x.rows[upstream] = x.newRow(upstream)
		x.lists[x.rows[upstream]].cap = x.lists[row].cap
		x.cleared = append(x.cleared, row)
		return
	}
	for l := &x.lists[row]; l.len > 0; {
		x.remove(l.oldest)
	}
}

// forget removes some of what is to be forgotten.
func (x *Index) forget() {
	for most := forgetByPut; len(x.cleared) > 0 && most > 0; most-- {
		last := len(x.cleared) - 1
		l := &x.lists[x.cleared[last]]
		if l.len > 0 {
			x.remove(l.oldest)
		}
		if l.len == 0 {
			x.spare = append(x.spare, x.cleared[last])
			x.cleared = x.cleared[:last]
		}
	}
}

// Put notes that an upstream has used the blocks of a chain: those missing are
// added, and all become the most recently used, the first block most of all.
// An engine frees a request's blocks from its end, so heads outlive tails.
//
// Of a chain of more than AtOnce blocks that is so for the first of them at once,
// and for the others after some calls of Work. Until then the index keeps the
// chain, and it must not change.
func (x *Index) Put(upstream int, chain []uint64) {
	if upstream >= len(x.rows) || len(chain) == 0 {
		return
	}
	x.cancel(upstream, chain)
	if len(chain) <= x.piece {
		x.put(upstream, chain)
		return
	}
	x.put(upstream, chain[:x.piece])
	x.putOff(job{upstream: upstream, chain: chain, from: x.piece, to: len(chain)})
}

func (x *Index) put(upstream int, chain []uint64) {
	row := x.rows[upstream]
	l := &x.lists[row]
	x.fit(l, l.cap, forgetByPut)
	x.forget()
	// More than fits would only push out its own head.
	chain = chain[:min(len(chain), l.cap)]
	n := len(chain)
	if n == 0 || l.lastPut == n && l.lastHash == chain[n-1] && n <= l.len {
		return
	}
	l.lastPut, l.lastHash = n, chain[n-1]
	ahead := len(chain) // the first of those that were read ahead
	for i := len(chain) - 1; i >= 0; i-- {
		at := x.find(place(chain[i]), row)
		if at.entry != none {
			// Blocks that were used together stand side by side in the list, so
			// the first is found in the table, the others beside it, and all
			// are moved at once.
			first, more := x.beside(at.entry, chain[:i])
			i -= more
			x.renew(row, first, at.entry)
			continue
		}
		if x.crowded(row) {
			x.makeRoom(row)
			at = x.find(place(chain[i]), row) // a set may be gone
		}
		x.insert(place(chain[i]), row, at)
		if i <= ahead {
			// Those before are likely missing too.
			ahead = max(i-readAhead, 0)
			x.warm(chain[ahead:i], row)
			if x.crowded(row) {
				x.warmOldest(row)
			}
		}
	}
}

// Drop forgets that an upstream holds the blocks of a chain behind the first
// ones. If the upstream was told to hold longer chains meanwhile, their ends stay
// until they are dropped or put, and Match may count too much. Of more than
// AtOnce blocks the last are forgotten at once, and the others as Put has it.
func (x *Index) Drop(upstream int, chain []uint64, first int) {
	if upstream >= len(x.rows) || first >= len(chain) {
		return
	}
	x.cancel(upstream, chain)
	j := job{upstream: upstream, chain: chain, from: first, to: len(chain), drop: true}
	if !x.step(&j) {
		x.putOff(j)
	}
}

func (x *Index) drop(upstream int, blocks []uint64) {
	row := x.rows[upstream]
	x.lists[row].lastPut = 0
	for len(blocks) > 0 {
		some := blocks[:min(len(blocks), readAhead)]
		blocks = blocks[len(some):]
		x.warm(some, row)
		for _, h := range some {
			if at := x.find(place(h), row); at.entry != none {
				x.remove(at.entry)
			}
		}
	}
}

// crowded reports whether one more entry, with a set for it, would be beyond
// the upstream's bound or that of the index.
func (x *Index) crowded(row int) bool {
	l := &x.lists[row]
	return l.len >= l.cap || x.taken+2 > x.limit
}

// makeRoom frees entries: of the upstream itself where it is at its bound, else
// those least recently used by the upstream that holds most, of the one that
// grows and a few others in turn. Over many inserts that evens out as looking
// at all of them would, and a newcomer gets room.
func (x *Index) makeRoom(row int) {
	x.fit(&x.lists[row], x.lists[row].cap-1, 2)
	for x.taken+2 > x.limit {
		victim := row
		for range min(len(x.lists), 8) {
			if x.hand++; x.hand >= len(x.lists) {
				x.hand = 0
			}
			if x.lists[x.hand].len > x.lists[victim].len {
				victim = x.hand
			}
		}
		for other := 0; x.lists[victim].len == 0; other++ {
			victim = other // all that were looked at hold nothing, so another does
		}
		x.remove(x.lists[victim].oldest)
		x.evicted.Memory++
	}
}

func (x *Index) linkNewest(e uint32) {
	at := x.at(e)
	l := &x.lists[at.upstream()]
	at.newer, at.older = none, l.newest
	if l.newest != none {
		x.at(l.newest).newer = e
	} else {
		l.oldest = e
	}
	l.newest = e
	l.len++
}

// renew makes entries that stand side by side, from first to last, an
// upstream's most recently used.
func (x *Index) renew(row int, first, last uint32) {
	l := &x.lists[row]
	if l.newest == first {
		return
	}
	newer, older := x.at(first).newer, x.at(last).older
	x.at(newer).older = older
	if older != none {
		x.at(older).newer = newer
	} else {
		l.oldest = newer
	}
	x.at(first).newer, x.at(last).older = none, l.newest
	x.at(l.newest).newer = last
	l.newest = first
}

// beside finds how many of the last of some blocks stand beside an entry in its list,
// towards the most recently used, and the entry of the first of them.
func (x *Index) beside(e uint32, blocks []uint64) (first uint32, n int) {
	first = e
	// Entries that were made together mostly lie together too. A processor that
	// takes that for granted looks at some at once, and else waits for each entry
	// to tell of the next.
	step := uint32(1)
	slab := x.entries[first>>slabBits]
	for i := len(blocks) - 1; i >= 0; i-- {
		newer := first + step
		if told := slab[first&(slabSize-1)].newer; told != newer {
			if told == none {
				break
			}
			newer, step = told, told-first
		}
		if newer>>slabBits != first>>slabBits {
			slab = x.entries[newer>>slabBits]
		}
		if slab[newer&(slabSize-1)].spot() != place(blocks[i]) {
			break
		}
		first = newer
		n++
	}
	return first, n
}

func (x *Index) unlink(e uint32) {
	at := x.at(e)
	l := &x.lists[at.upstream()]
	if at.newer != none {
		x.at(at.newer).older = at.older
	} else {
		l.newest = at.older
	}
	if at.older != none {
		x.at(at.older).newer = at.newer
	} else {
		l.oldest = at.newer
	}
	l.len--
}
