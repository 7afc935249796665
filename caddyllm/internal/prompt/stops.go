package prompt

import (
	"bytes"
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
	lows    = 0x7f * ones
	slashes = '\\' * ones
	evens   = 0x5555555555555555
)

// stops are what a stride has of interest, by place in the word.
type stops struct {
	at      int    // where the stride begins
	quotes  uint64 // those that aren't escaped
	letters uint64 // those of escapes, if one of them isn't canonical
	carry   uint64 // 1 if the byte behind the stride is escaped
}

// What looks for the two is added in registers. Go would load such constants
// anew for each word.
var (
	both  uint64 = slashes ^ ones // makes a quote 0x7f and a backslash 1
	one   uint64 = ones
	most  uint64 = lows
	highs uint64 = lows ^ (1<<64 - 1)
)

// seek goes from stride to stride, to one with a quote that isn't escaped or with
// an escape that isn't canonical. carry is 1 if the byte at at is escaped. Where
// the text ends without, neither is set.
func seek(text []byte, at int, carry uint64) stops {
	both, one, most, highs := both, one, most, highs
	for ; at+stride <= len(text); at += stride {
		b := (*[stride]byte)(text[at : at+stride])
		// A sum has the high bit of each byte that is a quote, or that is no
		// backslash. A loop over the eight words takes a third longer.
		var w, wide, quote, slash uint64
		w = binary.LittleEndian.Uint64(b[0:8])
		wide |= w
		w = w&most ^ both
		quote |= (w + one) & highs >> 7
		slash |= ((w ^ one) + most) & highs >> 7
		w = binary.LittleEndian.Uint64(b[8:16])
		wide |= w
		w = w&most ^ both
		quote |= (w + one) & highs >> 6
		slash |= ((w ^ one) + most) & highs >> 6
		w = binary.LittleEndian.Uint64(b[16:24])
		wide |= w
		w = w&most ^ both
		quote |= (w + one) & highs >> 5
		slash |= ((w ^ one) + most) & highs >> 5
		w = binary.LittleEndian.Uint64(b[24:32])
		wide |= w
		w = w&most ^ both
		quote |= (w + one) & highs >> 4
		slash |= ((w ^ one) + most) & highs >> 4
		w = binary.LittleEndian.Uint64(b[32:40])
		wide |= w
		w = w&most ^ both
		quote |= (w + one) & highs >> 3
		slash |= ((w ^ one) + most) & highs >> 3
		w = binary.LittleEndian.Uint64(b[40:48])
		wide |= w
		w = w&most ^ both
		quote |= (w + one) & highs >> 2
		slash |= ((w ^ one) + most) & highs >> 2
		w = binary.LittleEndian.Uint64(b[48:56])
		wide |= w
		w = w&most ^ both
		quote |= (w + one) & highs >> 1
		slash |= ((w ^ one) + most) & highs >> 1
		w = binary.LittleEndian.Uint64(b[56:64])
		wide |= w
		w = w&most ^ both
		quote |= (w + one) & highs >> 0
		slash |= ((w ^ one) + most) & highs >> 0
		if slash = ^slash; wide&highs != 0 {
			ascii := asciiIn(b)
			quote, slash = quote&ascii, slash&ascii
		}
		if quote|slash|carry == 0 {
			at = far(text, at+stride) - stride
			continue
		}
		escaped, next := slash<<8|slash>>56<<1&0xff|carry, slash>>63
		if slash&escaped != 0 {
			escaped, next = escapedByRuns(slash, carry)
		}
		letters := escaped &^ (quote | slash)
		m := letters
		for m != 0 && shortest[b[place(bits.TrailingZeros64(m))]] {
			m &= m - 1
		}
		if m == 0 {
			letters = 0
		}
		if quote &^= escaped; quote|letters != 0 {
			return stops{at, quote, letters, next}
		}
		carry = next
	}
	if at >= len(text) {
		return stops{at: at, carry: carry}
	}
	var rest [stride]byte
	copy(rest[:], text[at:])
	stop := seek(rest[:], 0, carry)
	stop.at += at
	return stop
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

// asciiIn finds the bytes below 0x80.
func asciiIn(b *[stride]byte) (ascii uint64) {
	for k := range stride / 8 {
		ascii |= ^binary.LittleEndian.Uint64(b[8*k:]) & (0x80 * ones) >> (7 - k)
	}
	return ascii
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
func place(i int) int { return (i<<3 + i>>3) & (stride - 1) }

// escapedByRuns finds the bytes that a backslash escapes, where some stand in a
// row.
//
//go:noinline
func escapedByRuns(slash, carry uint64) (escaped, next uint64) {
	escaped, next = behindRuns(inOrder(slash), carry)
	return inOrder(escaped), next
}

// behindRuns does so in the order of the text: what stands behind an odd number of
// backslashes is escaped. The sum carries through the
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
