package kv

// siblings are a block's neighbours in the ring of blocks with the same hash.
// Requests that were computed side by side bring forth such blocks; vLLM keeps
// them apart too. The eldest is the one that is found, and is in the table. Both
// are none for a block without any.
type siblings struct{ prev, next int32 }

func (p *Pool) hasSiblings(id int32) bool {
	return p.siblings != nil && p.siblings[id].next != none
}

// link puts id at the young end of the ring of the eldest.
func (p *Pool) link(eldest, id int32) {
	if p.siblings == nil { // most pools never get here
		p.siblings = make([]siblings, len(p.blocks), cap(p.blocks))
	}
	e := &p.siblings[eldest]
	if e.next == none {
		*e = siblings{eldest, eldest}
		if child := p.blocks[eldest].child; child != none {
			p.tabulate(child)
		}
		if p.blocks[eldest].parent != none {
			p.tabulate(eldest)
		}
	}
	if p.blocks[eldest].tip {
		p.disturbed = eldest
	}
	last := e.prev
	p.siblings[id] = siblings{last, eldest}
	p.siblings[last].next = id
	p.siblings[eldest].prev = id
}

// unlinkSibling takes id out of its ring and returns the next in it, none if id
// was alone.
func (p *Pool) unlinkSibling(id int32) int32 {
	if !p.hasSiblings(id) {
		return none
	}
	s := p.siblings[id]
	p.siblings[id] = siblings{}
	if s.next == s.prev { // one is left, alone
		p.siblings[s.next] = siblings{}
		p.blocks[s.next].branched = true // by those that followed any of them
		return s.next
	}
	p.siblings[s.prev].next, p.siblings[s.next].prev = s.next, s.prev
	return s.next
}
