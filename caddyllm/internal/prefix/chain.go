package prefix

// Bounds of a Chain.
const (
	MinBlock     = 64      // bytes
	MaxBlock     = 4096    // bytes
	DefaultBlock = 256     // bytes; about 64 tokens of English, four of vLLM's default KV blocks
	MaxBlocks    = 1 << 16 // hashes; 16 MiB of text at DefaultBlock
)

// Chain cuts a stream of bytes into blocks and hashes each block together with
// all before it: h_i = link(h_{i-1}, wyhash(block_i)). Equal hashes so mean equal
// prefixes, wherever the writes were cut. The blocks' own hashes don't wait for
// each other, which a processor makes use of. They need no secret: a forged
// collision costs its maker a badly chosen upstream, nothing else.
//
// Reset comes first. A Chain allocates only to grow the slice it was given,
// keeps the text of the open block until the next Reset, and is not safe for
// concurrent use.
type Chain struct {
	hashes []uint64
	prev   uint64
	block  int // bytes per block
	fill   int // bytes of the open block
	bytes  int // bytes written
	open   [MaxBlock]byte
}

// Reset starts a stream. Hashes are appended to dst[:0]; block is in bytes,
// 0 means DefaultBlock, and anything else is brought into MinBlock to MaxBlock.
func (c *Chain) Reset(dst []uint64, block int) {
	if block == 0 {
		block = DefaultBlock
	}
	c.hashes, c.block = dst[:0], min(max(block, MinBlock), MaxBlock)
	c.prev, c.fill, c.bytes = 0, 0, 0
}

// Write adds p to the stream. Behind MaxBlocks blocks there are no more
// hashes, but Bytes still takes in everything.
func (c *Chain) Write(p []byte) {
	c.bytes += len(p)
	if c.fill > 0 {
		n := copy(c.open[c.fill:c.block], p)
		c.fill += n
		if p = p[n:]; c.fill < c.block {
			return
		}
		c.add(c.open[:c.block])
	}
	c.fill = copy(c.open[:], c.add(p))
}

// add hashes the full blocks that p begins with, and returns what is left.
func (c *Chain) add(p []byte) []byte {
	prev, hashes, block := c.prev, c.hashes, c.block
	i := 0
	for ; i+block <= len(p); i += block {
		prev = link(prev, wyhash(p[i:i+block]))
		if len(hashes) < MaxBlocks {
			hashes = append(hashes, prev)
		}
	}
	c.prev, c.hashes = prev, hashes
	return p[i:]
}

// Bytes is the length of the stream so far.
func (c *Chain) Bytes() int { return c.bytes }

// Seal ends the stream and returns its hashes, one for each full block, each
// mixed with seed. The seed comes last because what it is made of (a model's
// name, a salt) may stand behind the text. The hashes share dst's memory. Seal
// must be called once; Bytes stays right.
func (c *Chain) Seal(seed uint64) []uint64 {
	key := keyOf(seed)
	for i, h := range c.hashes {
		c.hashes[i] = scramble(h ^ key)
	}
	return c.hashes
}

// link is one to one in each of its arguments.
func link(prev, block uint64) uint64 {
	return scramble(prev*0x9e3779b97f4a7c15 + block)
}

// keyOf is one to one, so that no two seeds share a hash.
func keyOf(seed uint64) uint64 { return scramble(seed + 0x9e3779b97f4a7c15) }

// scramble is one to one: what goes through it makes no collisions. The constants
// are those of SplitMix64 (Steele, Lea, Flood 2014).
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
