package rivals

// pages gives blocks, which are known by numbers, places in an array, by the
// page, so that only what is in use takes memory. Blocks of a prompt have numbers
// in a row and so lie side by side: replays of all rivals look up billions of
// them, and a map has them wait for memory several times for each.
type pages struct {
	index []int32 // by number / pageBlocks: page + 1; 0 is none
	owner []int32 // by page: which part of the index it is of
	used  []int32 // by page: its places that are in use
	spare []int32 // pages
}

const pageBlocks = 32

// find returns a block's place, and false if its page isn't there. Whether the
// place is in use is for the user to know.
func (p *pages) find(block int32) (place int32, ok bool) {
	i := uint32(block) / pageBlocks
	if i >= uint32(len(p.index)) || p.index[i] == 0 {
		return 0, false
	}
	return (p.index[i]-1)*pageBlocks + block%pageBlocks, true
}

// take returns the place of a block that has none yet. Places are below size,
// and those of a new page as they were left.
func (p *pages) take(block int32) (place int32) {
	i := int(block / pageBlocks)
	for len(p.index) <= i {
		p.index = append(p.index, 0)
	}
	if p.index[i] == 0 {
		if n := len(p.spare); n > 0 {
			p.index[i], p.spare = p.spare[n-1]+1, p.spare[:n-1]
		} else {
			p.owner, p.used = append(p.owner, 0), append(p.used, 0)
			p.index[i] = int32(len(p.owner))
		}
		p.owner[p.index[i]-1] = int32(i)
	}
	page := p.index[i] - 1
	p.used[page]++
	return page*pageBlocks + block%pageBlocks
}

// size is the number of places, in use or not.
func (p *pages) size() int { return len(p.owner) * pageBlocks }

// block is whose place it is.
func (p *pages) block(place int32) int32 {
	return p.owner[place/pageBlocks]*pageBlocks + place%pageBlocks
}

// drop gives a place back.
func (p *pages) drop(place int32) {
	page := place / pageBlocks
	if p.used[page]--; p.used[page] == 0 {
		p.index[p.owner[page]] = 0
		p.spare = append(p.spare, page)
	}
}

// tally counts blocks.
type tally struct {
	pages
	of   []int32 // by place
	some int     // blocks whose count isn't 0
}

func (c *tally) get(block int32) int32 {
	if place, ok := c.find(block); ok {
		return c.of[place]
	}
	return 0
}

func (c *tally) add(block int32) {
	place, ok := c.find(block)
	if !ok || c.of[place] == 0 {
		place = c.take(block)
		for len(c.of) < c.size() {
			c.of = append(c.of, 0)
		}
		c.some++
	}
	c.of[place]++
}

// drop takes one off a count that isn't 0.
func (c *tally) drop(block int32) {
	place, _ := c.find(block)
	if c.of[place]--; c.of[place] == 0 {
		c.some--
		c.pages.drop(place)
	}
}
