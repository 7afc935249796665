package prompt

import (
	"encoding/binary"
	"math/bits"
)

// stride is how many bytes are looked at together. What is found among them is
// a bit for each, the first byte's lowest: then runs of backslashes are sorted
// out by arithmetic, and no branch depends on where the escapes of code or of
// JSON within a string happen to stand.
const stride = 64

const (
	ones    = 0x0101010101010101
	highs   = 0x8080808080808080
	lows    = ^uint64(highs)
	quotes  = '"' * ones
	slashes = '\\' * ones
	evens   = 0x5555555555555555
	// gather times a word of high bits has them side by side in its highest byte.
	gather = 0x0002040810204081
)

// look finds the quotes and the backslashes.
func look(b *[stride]byte) (quote, slash uint64) {
	q0, s0 := misses(b[0:8])
	q1, s1 := misses(b[8:16])
	q2, s2 := misses(b[16:24])
	q3, s3 := misses(b[24:32])
	quote = q0 | q1<<8 | q2<<16 | q3<<24
	slash = s0 | s1<<8 | s2<<16 | s3<<24
	q0, s0 = misses(b[32:40])
	q1, s1 = misses(b[40:48])
	q2, s2 = misses(b[48:56])
	q3, s3 = misses(b[56:64])
	quote |= q0<<32 | q1<<40 | q2<<48 | q3<<56
	slash |= s0<<32 | s1<<40 | s2<<48 | s3<<56
	return ^quote, ^slash
}

// misses has a bit for each of eight bytes that is no quote, and no backslash.
// The sum has the high bit of each byte that differs in the lower seven.
func misses(b []byte) (quote, slash uint64) {
	w := binary.LittleEndian.Uint64(b)
	low := w & lows
	quote = (((low ^ quotes) + lows) | w) & highs * gather >> 56
	slash = (((low ^ slashes) + lows) | w) & highs * gather >> 56
	return quote, slash
}

// escapedBy finds the bytes that a backslash escapes: those behind an odd number
// of them. carry is 1 if the first byte is one, and then that of the next bytes.
// The sum carries through the runs that begin at odd places, and so tells them
// from the others (Langdale and Lemire 2019).
func escapedBy(slash, carry uint64) (escaped, next uint64) {
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
