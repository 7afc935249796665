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
// holds no text, and is not safe for concurrent use.
type Chain struct {
	hashes []uint64
	prev   uint64
	block  int // bytes per block
	fill   int // bytes of the open block
	bytes  int // bytes written
	digest xxhash.Digest
}

// Reset starts a stream. Hashes are appended to dst[:0]; block is in bytes,
// 0 means DefaultBlock, and anything else is brought into MinBlock to MaxBlock.
func (c *Chain) Reset(dst []uint64, block int) {
	if block == 0 {
		block = DefaultBlock
	}
	*c = Chain{hashes: dst[:0], block: min(max(block, MinBlock), MaxBlock)}
	c.digest.Reset()
}

// Write adds p to the stream. Behind MaxBlocks blocks there are no more
// hashes, but Bytes and Whole still take in everything.
func (c *Chain) Write(p []byte) {
	c.bytes += len(p)
	if room := c.block - c.fill; c.fill > 0 && len(p) >= room && len(c.hashes) < MaxBlocks {
		_, _ = c.digest.Write(p[:room]) // never fails
		p = p[room:]
		c.prev = link(c.prev, c.digest.Sum64())
		c.hashes = append(c.hashes, c.prev)
		c.digest.Reset()
		c.fill = 0
	}
	if c.fill == 0 {
		for len(p) >= c.block && len(c.hashes) < MaxBlocks {
			c.prev = link(c.prev, xxhash.Sum64(p[:c.block]))
			c.hashes = append(c.hashes, c.prev)
			p = p[c.block:]
		}
	}
	if len(p) > 0 {
		_, _ = c.digest.Write(p)
		c.fill += len(p)
	}
}

// Bytes is the length of the stream so far.
func (c *Chain) Bytes() int { return c.bytes }

// Block is the length of a block, bytes.
func (c *Chain) Block() int { return c.block }

// Open is the length of the block that isn't full yet, bytes.
func (c *Chain) Open() int { return c.fill }

// Whole identifies the stream to its last byte, the open block included. It
// tells prompts apart that are shorter than a block and have no hash in the
// chain; it is not itself part of the chain, since a longer stream doesn't
// have it.
func (c *Chain) Whole(seed uint64) uint64 {
	return mix(link(c.prev, c.digest.Sum64()+uint64(c.bytes)), seed)
}

// Seal ends the stream and returns its hashes, one for each full block, each
// mixed with seed. The seed comes last because what it is made of (a model's
// name, a salt) may stand behind the text. The hashes share dst's memory. Seal
// must be called once; Whole and Bytes stay right.
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
