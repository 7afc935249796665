package prompt

import "math/bits"

// stride is how many bytes are looked at together. What is found is a bit for each,
// and no branch depends on where the escapes of code or of JSON within a string
// happen to stand.
const stride = 64

const (
	ones  = 0x0101010101010101
	evens = 0x5555555555555555
)

// stops are what a stride has of interest. The lowest bit is the first byte's.
type stops struct {
	at     int    // where the stride begins
	quotes uint64 // those that aren't escaped
	odd    uint64 // letters of the escapes that aren't canonical
	carry  uint64 // 1 if the byte behind the stride is escaped
}

// seek goes from stride to stride, to one with a quote that isn't escaped or with
// an escape that isn't canonical. carry is 1 if the byte at at is escaped. Where
// the text ends without, neither is set.
//
// It is look that does so, in whole strides. It returns where the rest begins if
// nothing of interest is in them. One is for processors with vectors, one for all.
func seek(text []byte, at int, carry uint64) stops {
	stop := look(text, at, carry)
	if stop.quotes|stop.odd != 0 || stop.at >= len(text) {
		return stop
	}
	var rest [stride]byte
	copy(rest[:], text[stop.at:])
	end := look(rest[:], 0, stop.carry)
	end.at += stop.at
	return end
}

// behindRuns finds the bytes that a backslash escapes, where some may stand in a
// row: behind an odd number of them. The sum carries through the runs that begin
// at odd places, and so tells them from the others (Langdale and Lemire 2019).
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
