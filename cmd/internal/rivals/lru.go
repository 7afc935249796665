package rivals

import "sort"

// lru is a policy's model of what upstreams hold: a bounded LRU of block
// hashes for each.
type lru struct{ up []*blockList }

func newLRU(env Env, blocks int) *lru {
	l := &lru{}
	for range env.Upstreams {
		l.up = append(l.up, newBlockList(blocks))
	}
	return l
}

// held is the number of leading blocks that an upstream has. Chains are only put
// as a whole, heads last: who has a block has those before it.
func (l *lru) held(up int, chain []uint64) int {
	list := l.up[up]
	return sort.Search(len(chain), func(i int) bool { return !list.has(chain[i]) })
}

// put makes a chain the most recent of an upstream, its head the very most.
func (l *lru) put(up int, chain []uint64) {
	for i := len(chain) - 1; i >= 0; i-- {
		l.up[up].touch(chain[i])
	}
}

func (l *lru) resize(up, blocks int) { l.up[up].resize(blocks) }

// blockList is an LRU in slices.
type blockList struct {
	places blockTable
	nodes  []blockNode // nodes[0] is the ring's anchor
	spare  []int32
	most   int
}

type blockNode struct {
	hash       uint64
	prev, next int32
}

func newBlockList(most int) *blockList {
	return &blockList{nodes: make([]blockNode, 1), most: max(most, 1)}
}

// len is the number of blocks.
func (l *blockList) len() int { return l.places.used }

// oldest is the block that goes next; 0 if there is none.
func (l *blockList) oldest() uint64 { return l.nodes[l.nodes[0].prev].hash }

func (l *blockList) has(hash uint64) bool { return l.places.find(l.nodes, hash) != 0 }

func (l *blockList) touch(hash uint64) {
	at := l.places.find(l.nodes, hash)
	if at != 0 {
		l.unlink(at)
	} else {
		for l.len() >= l.most {
			l.evict()
		}
		at = int32(len(l.nodes))
		if n := len(l.spare); n > 0 {
			at, l.spare = l.spare[n-1], l.spare[:n-1]
		} else {
			l.nodes = append(l.nodes, blockNode{})
		}
		l.nodes[at].hash = hash
		l.places.add(l.nodes, at)
	}
	head := l.nodes[0].next
	l.nodes[at].prev, l.nodes[at].next = 0, head
	l.nodes[head].prev = at
	l.nodes[0].next = at
}

func (l *blockList) unlink(at int32) {
	n := l.nodes[at]
	l.nodes[n.prev].next, l.nodes[n.next].prev = n.next, n.prev
}

func (l *blockList) evict() {
	oldest := l.nodes[0].prev
	l.unlink(oldest)
	l.places.drop(l.nodes, oldest)
	l.spare = append(l.spare, oldest)
}

func (l *blockList) resize(most int) {
	l.most = max(most, 1)
	for l.len() > l.most {
		l.evict()
	}
}
