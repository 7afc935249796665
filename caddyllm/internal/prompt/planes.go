package prompt

import (
	"bytes"
	"encoding/binary"
)

// A stride is eight words of eight bytes. They are turned into eight planes, one for
// each bit of a byte, so that what a byte is becomes logic that looks at all of them
// at once (Cameron, Herdy and Lin 2008). Planes have bits by place in the word, the
// first bytes of all words first. inOrder turns that into the order of the text.

// What is exchanged by planes is masked in registers. Go would load such constants
// anew for each word.
var (
	singles uint64 = 0x55 * ones
	pairs   uint64 = 0x33 * ones
	halves  uint64 = 0x0f * ones
)

// lookPlanes is look for any processor.
func lookPlanes(text []byte, at int, carry uint64) stops {
	singles, pairs, halves := singles, pairs, halves
	for ; at+stride <= len(text); at += stride {
		b := (*[stride]byte)(text[at : at+stride])
		// Plane n ends up in bn. Each step is an exchange of bits between two of
		// them; as a function it would take a tenth longer.
		var t uint64
		b0 := binary.LittleEndian.Uint64(b[0:8])
		b1 := binary.LittleEndian.Uint64(b[8:16])
		b2 := binary.LittleEndian.Uint64(b[16:24])
		b3 := binary.LittleEndian.Uint64(b[24:32])
		t = (b0>>1 ^ b1) & singles
		b0, b1 = b0^t<<1, b1^t
		t = (b2>>1 ^ b3) & singles
		b2, b3 = b2^t<<1, b3^t
		t = (b0>>2 ^ b2) & pairs
		b0, b2 = b0^t<<2, b2^t
		t = (b1>>2 ^ b3) & pairs
		b1, b3 = b1^t<<2, b3^t
		b4 := binary.LittleEndian.Uint64(b[32:40])
		b5 := binary.LittleEndian.Uint64(b[40:48])
		b6 := binary.LittleEndian.Uint64(b[48:56])
		b7 := binary.LittleEndian.Uint64(b[56:64])
		t = (b4>>1 ^ b5) & singles
		b4, b5 = b4^t<<1, b5^t
		t = (b6>>1 ^ b7) & singles
		b6, b7 = b6^t<<1, b7^t
		t = (b4>>2 ^ b6) & pairs
		b4, b6 = b4^t<<2, b6^t
		t = (b5>>2 ^ b7) & pairs
		b5, b7 = b5^t<<2, b7^t
		t = (b0>>4 ^ b4) & halves
		b0, b4 = b0^t<<4, b4^t
		t = (b1>>4 ^ b5) & halves
		b1, b5 = b1^t<<4, b5^t
		t = (b2>>4 ^ b6) & halves
		b2, b6 = b2^t<<4, b6^t
		t = (b3>>4 ^ b7) & halves
		b3, b7 = b3^t<<4, b7^t

		neither := b0 | b7                                // of no byte that is looked for
		quote := b1 & b5 &^ (neither | b2 | b3 | b4 | b6) // 0100010
		slash := b2 & b3 & b4 & b6 &^ (neither | b1 | b5) // 1011100
		if quote|slash|carry == 0 {
			at = far(text, at+stride) - stride
			continue
		}
		escaped, next := slash<<8|slash>>56<<1&0xff|carry, slash>>63
		if slash&escaped != 0 {
			escaped, next = escapedByRuns(slash, carry)
		}
		// The other canonical ones: b 1100010, f 1100110, n 1101110, r 1110010, t 1110100
		bfn := b1 &^ b4 & (b2 | ^b3)
		rt := (b1 ^ b2) & b4 &^ b3
		odd := escaped &^ (quote | slash | b5&b6&(bfn|rt)&^neither)
		if quote &^= escaped; quote|odd != 0 {
			return stops{at, inOrder(quote), inOrder(odd), next}
		}
		carry = next
	}
	return stops{at: at, carry: carry}
}

// farthest bounds what far looks at, bytes, so that looking for the one doesn't
// cost much more than it is to the other.
const farthest = 1024

// far is the index of the next quote or backslash from i on, or some index before
// it. A stride without one makes it likely that they are so far that this is
// sooner.
func far(text []byte, i int) int {
	if i >= len(text) {
		return i
	}
	ahead := text[i:min(i+farthest, len(text))]
	if k := bytes.IndexByte(ahead, '\\'); k >= 0 {
		ahead = ahead[:k]
	}
	if k := bytes.IndexByte(ahead, '"'); k >= 0 {
		ahead = ahead[:k]
	}
	return i + len(ahead)
}

// inOrder turns bits by place in the word into those in the order of the text,
// and back: a square of eight by eight is mirrored (Warren 2012, 7-3).
func inOrder(x uint64) uint64 {
	t := (x ^ x>>7) & 0x00aa00aa00aa00aa
	x ^= t ^ t<<7
	t = (x ^ x>>14) & 0x0000cccc0000cccc
	x ^= t ^ t<<14
	t = (x ^ x>>28) & 0x00000000f0f0f0f0
	return x ^ t ^ t<<28
}

// escapedByRuns is behindRuns for bits by place in the word.
//
//go:noinline
func escapedByRuns(slash, carry uint64) (escaped, next uint64) {
	escaped, next = behindRuns(inOrder(slash), carry)
	return inOrder(escaped), next
}
