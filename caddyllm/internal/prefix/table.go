package prefix

import "math/bits"

// An entry says that an upstream holds a block, or is a set: which upstreams of
// a group hold it. A block that few of a group hold has its entries in the
// bucket of (block, group), where they are found together. With more than
// crowd of them a set takes their place there, and each moves to the bucket of
// (block, upstream): then neither finding all nor finding one takes longer for
// there being many.
type entry struct {
	high  uint32 // of its spot
	low   uint16
	owner uint16 // the upstream, with alone; or the group, with isSet
	chain uint32 // next in the bucket

	newer uint32 // towards the most recently used; of a set, its lower 32 members
	older uint32 // of a set, its upper 32 members
}

// spot is what of a hash an entry keeps and has its place by: 48 bits. Blocks
// that agree in them are taken for one, which costs at worst a worse choice.
type spot struct {
	high uint32
	low  uint16
}

// place spreads a hash, so that also one that differs only in its last bits
// from another has another place.
func place(hash uint64) spot {
	hash *= 0x9e3779b97f4a7c15
	return spot{high: uint32(hash >> 32), low: uint16(hash >> 16)}
}

const (
	groupSize = 64
	crowd     = 4

	isSet = 1 << 15
	alone = 1 << 14

	// none ends lists and chains: entry 0 is never used.
	none = 0

	slabBits   = 12
	slabSize   = 1 << slabBits
	entryBytes = 20 + 4 // entry, and its bucket
)

func (at *entry) spot() spot { return spot{at.high, at.low} }

func (at *entry) upstream() int { return int(at.owner &^ alone) }

func (at *entry) members() uint64 { return uint64(at.older)<<32 | uint64(at.newer) }

func (at *entry) setMembers(m uint64) { at.newer, at.older = uint32(m), uint32(m>>32) }

// key is what an entry's bucket is found by.
func (at *entry) key() uint32 {
	switch {
	case at.owner&isSet != 0:
		return groupKey(at.spot(), int(at.owner&^isSet))
	case at.owner&alone != 0:
		return ownKey(at.spot(), at.upstream())
	}
	return groupKey(at.spot(), int(at.owner/groupSize))
}

// groupKey has the groups of a block side by side: all are looked at in turn.
func groupKey(s spot, group int) uint32  { return s.high + uint32(group) }
func ownKey(s spot, upstream int) uint32 { return ^s.high + uint32(upstream)*0x85ebca77 }

// found is what the table has of a block and an upstream.
type found struct {
	entry  uint32 // none: the upstream doesn't hold it
	set    uint32 // of the upstream's group, none if few hold it
	shared int    // entries in the group's bucket, if there is no set and no entry
}

func (x *Index) find(s spot, upstream int) found {
	group := upstream / groupSize
	var f found
	for e := x.head(groupKey(s, group)); e != none; {
		at := x.at(e)
		if at.spot() == s {
			switch {
			case int(at.owner) == upstream:
				return found{entry: e}
			case int(at.owner) == isSet|group:
				f.set = e
				if at.members()&(1<<(upstream%groupSize)) != 0 {
					f.entry = x.findAlone(s, upstream)
				}
				return f
			case at.owner < alone && int(at.owner)/groupSize == group:
				f.shared++
			}
		}
		e = at.chain
	}
	return f
}

func (x *Index) findAlone(s spot, upstream int) uint32 {
	e := x.head(ownKey(s, upstream))
	for e != none {
		at := x.at(e)
		if at.spot() == s && int(at.owner) == alone|upstream {
			break
		}
		e = at.chain
	}
	return e
}

// holders is the set of upstreams of a group that hold a block.
func (x *Index) holders(s spot, group int) uint64 {
	var members uint64
	for e := x.head(groupKey(s, group)); e != none; {
		at := x.at(e)
		if at.spot() == s {
			if int(at.owner) == isSet|group {
				return at.members()
			}
			if at.owner < alone && int(at.owner)/groupSize == group {
				members |= 1 << (at.owner % groupSize)
			}
		}
		e = at.chain
	}
	return members
}

// insert adds an entry; find said that it is missing.
func (x *Index) insert(s spot, upstream int, f found) {
	if f.set == none && f.shared >= crowd {
		f.set = x.gather(s, upstream/groupSize)
	}
	owner := uint16(upstream)
	if f.set != none {
		owner |= alone
		set := x.at(f.set)
		set.setMembers(set.members() | 1<<(upstream%groupSize))
	}
	x.linkNewest(x.add(s, owner))
	x.grow()
}

// gather makes a set of a group's entries of a block.
func (x *Index) gather(s spot, group int) uint32 {
	members := x.holders(s, group)
	for m := members; m != 0; m &= m - 1 {
		u := group*groupSize + bits.TrailingZeros64(m)
		e := x.find(s, u).entry
		x.unchain(e)
		x.at(e).owner |= alone
		x.chain(e)
	}
	set := x.add(s, uint16(isSet|group))
	x.sets++
	x.at(set).setMembers(members)
	return set
}

// remove frees an entry, and the set of a block that only one still holds.
func (x *Index) remove(e uint32) {
	at := x.at(e)
	s, upstream, wasAlone := at.spot(), at.upstream(), at.owner&alone != 0
	x.unlink(e)
	x.free(e)
	if !wasAlone {
		return
	}
	group := upstream / groupSize
	set := x.find(s, upstream).set
	members := x.at(set).members() &^ (1 << (upstream % groupSize))
	x.at(set).setMembers(members)
	if members&(members-1) != 0 {
		return
	}
	x.free(set)
	x.sets--
	if members != 0 {
		last := x.findAlone(s, group*groupSize+bits.TrailingZeros64(members))
		x.unchain(last)
		x.at(last).owner &^= alone
		x.chain(last)
	}
}

// add takes an entry into use and chains it.
func (x *Index) add(s spot, owner uint16) uint32 {
	e := x.unused
	if e != none {
		x.unused = x.at(e).chain
	} else {
		e = x.next
		x.next++
		if int(e>>slabBits) == len(x.entries) {
			x.entries = append(x.entries, new([slabSize]entry))
		}
	}
	*x.at(e) = entry{high: s.high, low: s.low, owner: owner}
	x.chain(e)
	x.taken++
	return e
}

func (x *Index) free(e uint32) {
	x.unchain(e)
	*x.at(e) = entry{chain: x.unused}
	x.unused = e
	x.taken--
}

// chain puts an entry into its bucket.
func (x *Index) chain(e uint32) {
	at := x.at(e)
	head := x.bucket(x.address(at.key()))
	at.chain, *head = *head, e
}

func (x *Index) unchain(e uint32) {
	at := x.at(e)
	link := x.bucket(x.address(at.key()))
	for *link != e {
		link = &x.at(*link).chain
	}
	*link = at.chain
}

func (x *Index) at(e uint32) *entry { return &x.entries[e>>slabBits][e&(slabSize-1)] }
