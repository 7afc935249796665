package rivals

import "sort"

// lru is a policy's model of what upstreams hold: a bounded LRU of blocks for
// each.
type lru struct {
	up    []*blockList
	who   holders
	found []int
}

func newLRU(env Env, blocks int) *lru {
	l := &lru{found: make([]int, env.Upstreams)}
	for i := range env.Upstreams {
		l.up = append(l.up, newBlockList(blocks))
		if env.Upstreams <= holdersMax {
			l.up[i].who, l.up[i].id = &l.who, i
		}
	}
	return l
}

// held is the number of leading blocks that each upstream has. Chains are only put
// as a whole, heads last: who has a block has those before it. The slice is valid
// until the next call.
func (l *lru) held(chain []int32) []int {
	if len(l.up) <= holdersMax {
		l.who.leading(chain, l.found)
		return l.found
	}
	for i, list := range l.up {
		l.found[i] = leading(chain, list.has)
	}
	return l.found
}

// leading is how many of the first blocks match, where none matches behind one
// that doesn't. Most upstreams have few of a chain, so it is looked for from the
// front, in steps that double.
func leading(chain []int32, match func(block int32) bool) int {
	low, step := 0, 1
	for low+step <= len(chain) && match(chain[low+step-1]) {
		low += step
		step *= 2
	}
	rest := min(step-1, len(chain)-low)
	return low + sort.Search(rest, func(i int) bool { return !match(chain[low+i]) })
}

// put makes a chain the most recent of an upstream, its head the very most.
func (l *lru) put(up int, chain []int32) {
	list := l.up[up]
	for i := len(chain) - 1; i >= 0; i-- {
		list.touch(chain[i])
	}
}

func (l *lru) resize(up, blocks int) { l.up[up].resize(blocks) }

// blockList is an LRU: a ring through the places of blocks.
type blockList struct {
	places         pages
	nodes          []blockNode // by place
	newest, oldest int32       // absent if there is none
	count, most    int

	who *holders // told of what comes and goes, as upstream id; nil for nobody
	id  int
}

// blockNode is absent in both where no block is.
type blockNode struct{ newer, older int32 }

const absent = -1

// end is behind the newest and the oldest.
const end = -2

func newBlockList(most int) *blockList {
	return &blockList{newest: end, oldest: end, most: max(most, 1)}
}

// len is the number of blocks.
func (l *blockList) len() int { return l.count }

func (l *blockList) has(block int32) bool {
	place, ok := l.places.find(block)
	return ok && l.nodes[place].newer != absent
}

func (l *blockList) touch(block int32) {
	place, ok := l.places.find(block)
	switch {
	case !ok || l.nodes[place].newer == absent:
		for l.count >= l.most {
			l.evict()
		}
		place = l.places.take(block)
		for len(l.nodes) < l.places.size() {
			l.nodes = append(l.nodes, blockNode{absent, absent})
		}
		l.count++
		l.who.set(block, l.id, true)
	case place == l.newest:
		return
	default:
		l.unlink(place)
	}
	l.nodes[place] = blockNode{newer: end, older: l.newest}
	if l.newest != end {
		l.nodes[l.newest].newer = place
	} else {
		l.oldest = place
	}
	l.newest = place
}

func (l *blockList) unlink(place int32) {
	n := l.nodes[place]
	if n.newer != end {
		l.nodes[n.newer].older = n.older
	} else {
		l.newest = n.older
	}
	if n.older != end {
		l.nodes[n.older].newer = n.newer
	} else {
		l.oldest = n.newer
	}
}

func (l *blockList) evict() {
	place := l.oldest
	l.unlink(place)
	l.nodes[place] = blockNode{absent, absent}
	l.who.set(l.places.block(place), l.id, false)
	l.places.drop(place)
	l.count--
}

func (l *blockList) resize(most int) {
	l.most = max(most, 1)
	for l.count > l.most {
		l.evict()
	}
}
