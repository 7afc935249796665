package kv

// Lend takes n blocks, which must be free, for holders who will claim them
// later. Which ones is decided when it matters: before anybody looks for a
// prefix, takes or releases. Until then lending costs nothing.
func (p *Pool) Lend(n int) { p.unpicked += n }

// Lent is the number of blocks lent and not claimed.
func (p *Pool) Lent() int { return p.unpicked + p.picked }

// Claim hands out n of the blocks that were lent and appends them to held.
func (p *Pool) Claim(n int, held []int32) []int32 {
	if n > p.picked {
		p.pick()
	}
	for range n {
		id := p.lent
		p.lent = p.blocks[id].next
		p.blocks[id].next = none
		held = append(held, id)
	}
	p.picked -= n
	return held
}

// pick takes the blocks that were lent, as they would have been taken then: what
// was freed since is at the other end of the list.
func (p *Pool) pick() {
	for range p.unpicked {
		id := p.take()
		p.blocks[id].next = p.lent
		p.lent = id
	}
	p.picked += p.unpicked
	p.unpicked = 0
}

// Tip tells whether nobody but the one holder of a block can know or make known
// what follows it, and if so notes that the holder will tell later. When a Match
// ends with the block, or it is Disturbed, the holder must tell at once, and
// Told be called.
func (p *Pool) Tip(id int32) bool {
	b := &p.blocks[id]
	b.tip = b.refs == 1 && b.child == none && p.knows(id)
	return b.tip
}

// IsTip tells whether Tip was noted.
func (p *Pool) IsTip(id int32) bool { return p.blocks[id].tip }

// Disturbed returns a tip that has got a sibling, through which others too can
// make known what follows it, and forgets about it; 0 if there is none.
func (p *Pool) Disturbed() int32 {
	id := p.disturbed
	p.disturbed = none
	return id
}

// Told ends what Tip began.
func (p *Pool) Told(id int32) { p.blocks[id].tip = false }
