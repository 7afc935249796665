package prefix

import (
	"encoding/binary"
	"math/bits"
)

// Constants of the sum: odd, and with bytes that valid UTF-8 has nowhere, so that
// no text makes a factor 0.
const (
	k0 = 0x9e3779b97f4a7c15
	k1 = 0xd1b54a32d192ed03
	k2 = 0xabc98388fb8fac03
	k3 = 0x8cb92ba72f3d8dd7
)

// sum hashes a block of at least 64 bytes. Four lanes take 16 bytes at a time
// each, with one multiplication whose halves are folded together (Wang Yi's
// wyhash, 2019). XXH64 needs four for that and a long way to bring its lanes
// together, and hashing is the largest part of what a prompt costs.
func sum(block []byte) uint64 {
	a, b, c, d := uint64(k1), uint64(k2), uint64(k3), uint64(k0)
	for p := block; len(p) > 0; p = p[64:] {
		if len(p) < 64 {
			p = block[len(block)-64:]
		}
		q := (*[64]byte)(p)
		a = fold(word(q[0:8])^k0, word(q[8:16])^a)
		b = fold(word(q[16:24])^k1, word(q[24:32])^b)
		c = fold(word(q[32:40])^k2, word(q[40:48])^c)
		d = fold(word(q[48:56])^k3, word(q[56:64])^d)
	}
	return fold(a^k3, b^k2) ^ fold(c^k1, d^k0)
}

func word(p []byte) uint64 { return binary.LittleEndian.Uint64(p) }

func fold(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}
