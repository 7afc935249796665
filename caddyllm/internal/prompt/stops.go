package prompt

import (
	"encoding/binary"
	"math/bits"
)

// stride is how many bytes are looked at together, as eight words of eight. What
// is found among them is a bit for each, so that no branch depends on where the
// escapes of code or of JSON within a string happen to stand.
const stride = 64

// Bits come in two orders: that of the text, and by place in the word, the first
// bytes of all words first, which takes less work to make. inOrder turns one
// into the other.

const (
	ones    = 0x0101010101010101
	highs   = 0x8080808080808080
	lows    = ^uint64(highs)
	quotes  = '"' * ones
	slashes = '\\' * ones
	evens   = 0x5555555555555555
)

// look finds the quotes and the backslashes, by place in the word. The sums have
// the high bit of each byte that differs.
func look(b *[stride]byte) (quote, slash uint64) {
	var w, wide uint64
	w = binary.LittleEndian.Uint64(b[0:8])
	wide |= w
	quote |= ((w ^ quotes) + lows) & highs >> 7
	slash |= ((w ^ slashes) + lows) & highs >> 7
	w = binary.LittleEndian.Uint64(b[8:16])
	wide |= w
	quote |= ((w ^ quotes) + lows) & highs >> 6
	slash |= ((w ^ slashes) + lows) & highs >> 6
	w = binary.LittleEndian.Uint64(b[16:24])
	wide |= w
	quote |= ((w ^ quotes) + lows) & highs >> 5
	slash |= ((w ^ slashes) + lows) & highs >> 5
	w = binary.LittleEndian.Uint64(b[24:32])
	wide |= w
	quote |= ((w ^ quotes) + lows) & highs >> 4
	slash |= ((w ^ slashes) + lows) & highs >> 4
	w = binary.LittleEndian.Uint64(b[32:40])
	wide |= w
	quote |= ((w ^ quotes) + lows) & highs >> 3
	slash |= ((w ^ slashes) + lows) & highs >> 3
	w = binary.LittleEndian.Uint64(b[40:48])
	wide |= w
	quote |= ((w ^ quotes) + lows) & highs >> 2
	slash |= ((w ^ slashes) + lows) & highs >> 2
	w = binary.LittleEndian.Uint64(b[48:56])
	wide |= w
	quote |= ((w ^ quotes) + lows) & highs >> 1
	slash |= ((w ^ slashes) + lows) & highs >> 1
	w = binary.LittleEndian.Uint64(b[56:64])
	wide |= w
	quote |= ((w ^ quotes) + lows) & highs >> 0
	slash |= ((w ^ slashes) + lows) & highs >> 0
	if wide&highs != 0 {
		return lookWide(b)
	}
	return ^quote, ^slash
}

// lookWide is look where not all is ASCII, whose sums would carry.
func lookWide(b *[stride]byte) (quote, slash uint64) {
	for k := 0; k < stride; k += 8 {
		w := binary.LittleEndian.Uint64(b[k:])
		low := w & lows
		quote = quote>>1 | ((low^quotes)+lows|w)&highs
		slash = slash>>1 | ((low^slashes)+lows|w)&highs
	}
	return ^quote, ^slash
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

// place is where in the text bit i of those by place in the word stands.
func place(i int) int { return (i&7)<<3 | i>>3 }

// escapedBy finds the bytes that a backslash escapes, by place in the word.
// carry is 1 if the first byte is one, and then that of the next bytes.
func escapedBy(slash, carry uint64) (escaped, next uint64) {
	escaped = slash<<8 | slash>>56<<1&0xff | carry
	if slash&escaped == 0 {
		return escaped, slash >> 63
	}
	escaped, next = behindRuns(inOrder(slash), carry)
	return inOrder(escaped), next
}

// behindRuns is escapedBy in the order of the text, for backslashes in a row: what
// stands behind an odd number of them is escaped. The sum carries through the
// runs that begin at odd places, and so tells them from the others (Langdale and
// Lemire 2019).
func behindRuns(slash, carry uint64) (escaped, next uint64) {
	slash &^= carry
	follows := slash<<1 | carry
	runs, next := bits.Add64(slash&^evens&^follows, slash, 0)
	return (evens ^ runs<<1) & follows, next
}

// stringEnd is the index behind the string that begins at i, -1 if it isn't
// closed. Only what no landmark tells is looked at this way.
func stringEnd(body []byte, i int) int {
	for j := i + 1; j < len(body); j++ {
		switch body[j] {
		case '"':
			return j + 1
		case '\\':
			j++
		}
	}
	return -1
}
