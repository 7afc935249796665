package prefix

import "github.com/cespare/xxhash/v2"

// Bounds of a Chain.
const (
	MinBlock     = 64      // bytes
	MaxBlock     = 4096    // bytes
	DefaultBlock = 256     // bytes; about 64 tokens of English, four of vLLM's default KV blocks
	MaxBlocks    = 1 << 16 // hashes; 16 MiB of text at DefaultBlock
)

// Chain cuts a stream of bytes into blocks and hashes each block together with
// all before it: h_i = link(h_{i-1}, xxhash64(block_i)). Equal hashes so mean
// equal prefixes, wherever the writes were cut. The blocks' own hashes don't
// wait for each other, which a processor makes use of. xxhash needs no secret here: a
// forged collision costs its maker a badly chosen upstream, nothing else.
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
		c.fill = 0
	}
	for len(p) >= c.block {
		c.add(p[:c.block])
		p = p[c.block:]
	}
	c.fill = copy(c.open[:], p)
}

func (c *Chain) add(block []byte) {
	c.prev = link(c.prev, xxhash.Sum64(block))
	if len(c.hashes) < MaxBlocks {
		c.hashes = append(c.hashes, c.prev)
	}
}

// Bytes is the length of the stream so far.
func (c *Chain) Bytes() int { return c.bytes }

// Seal ends the stream and returns its hashes, one for each full block, each
// mixed with seed. The seed comes last because what it is made of (a model's
// name, a salt) may stand behind the text. The hashes share dst's memory. Seal
// must be called once; Bytes stays right.
func (c *Chain) Seal(seed uint64) []uint64 {
	for i, h := range c.hashes {
		c.hashes[i] = mix(h, seed)
	}
	return c.hashes
}

// link is one to one in each of its arguments.
func link(prev, block uint64) uint64 {
	return scramble(prev*0x9e3779b97f4a7c15 + block)
}

// mix is one to one in h for each seed, so sealing makes no collisions. The
// constants are those of SplitMix64 (Steele, Lea, Flood 2014).
func mix(h, seed uint64) uint64 {
	return scramble(h ^ scramble(seed+0x9e3779b97f4a7c15))
}

func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
