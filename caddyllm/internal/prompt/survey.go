package prompt

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// maxDepth bounds the nesting of brackets. It is Python's default recursion
// limit, at which the engines' parser used to stop; Go's stops at 10,000.
const maxDepth = 1000

const (
	// longValue is the length from which a string, object or array becomes a
	// landmark, bytes. What is shorter is as quickly walked over again.
	longValue = 64
	// maxLandmarks bounds their memory to 1 MiB. A chat has some five for each
	// message; behind the bound the walks find the ends of values themselves.
	maxLandmarks = 1 << 16
	// maxBytes is what indexes of 32 bits reach. No body is kept that long.
	maxBytes = 1<<31 - 16
)

// landmark is a long value of the body. Landmarks are in the order in which
// their values begin.
type landmark struct {
	from, to int32
	next     int32 // the first landmark behind it
	cut      bool  // the body's end cuts it off
	clean    bool  // a string whose text is canonical as it stands
}

// survey is the first pass: one look at each byte, which finds where the body's
// long values end, whether brackets match and strings are closed, and nothing
// else. Walks then go over long values in one step. It returns the index behind
// the outermost value.
func (l *lexer) survey(i int) int {
	body := l.body
	l.marks = l.marks[:0]
	depth := 0
	for {
		for i < len(body) && !structural[body[i]] {
			i++
		}
		if i >= len(body) {
			break
		}
		switch c := body[i]; c {
		case '"':
			end, clean := stringEnd(body, i)
			if end < 0 {
				i = len(body)
				continue
			}
			if end-i >= longValue && len(l.marks) < maxLandmarks {
				l.marks = append(l.marks, landmark{from: int32(i), to: int32(end), next: int32(len(l.marks) + 1), clean: clean})
			}
			i = end
			continue
		case '{', '[':
			if depth++; depth > maxDepth {
				l.broken = true
				return i
			}
			l.open(depth, i, c == '{')
		default:
			if depth == 0 || !l.close(depth, i+1, c == '}') {
				l.broken = true
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	l.broken = l.complete
	for ; depth > 0; depth-- {
		if slot := l.stack[depth] >> 1; slot < maxLandmarks {
			m := &l.marks[slot]
			m.to, m.next, m.cut = int32(len(body)), int32(len(l.marks)), true
		}
	}
	return len(body)
}

// open notes an object or array that begins at i. Whether it is long will turn
// out at its end.
func (l *lexer) open(depth, i int, brace bool) {
	slot := int32(len(l.marks))
	if slot < maxLandmarks {
		l.marks = append(l.marks, landmark{from: int32(i)})
	}
	l.stack[depth] = slot << 1
	if brace {
		l.stack[depth]++
	}
}

func (l *lexer) close(depth, end int, brace bool) bool {
	top := l.stack[depth]
	if brace != (top&1 == 1) {
		return false
	}
	slot := top >> 1
	if slot == maxLandmarks {
		return true
	}
	m := &l.marks[slot]
	if end-int(m.from) < longValue {
		l.marks = l.marks[:slot] // nothing in it can be long either
		return true
	}
	m.to, m.next = int32(end), int32(len(l.marks))
	return true
}

// structural are the bytes that a survey stops at.
var structural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

const (
	ones    = 0x0101010101010101
	highs   = 0x8080808080808080
	lows    = ^uint64(highs)
	quotes  = '"' * ones
	slashes = '\\' * ones
)

// zeroBytes has the high bit set of the first zero byte of x and maybe of
// later ones, and is 0 where there is none (Lamport 1975, Mycroft 1987).
func zeroBytes(x uint64) uint64 { return (x - ones) & ^x & highs }

// stops has the high bit set of each byte of x that is a quote or a backslash.
// Unlike zeroBytes it is exact for all eight.
func stops(x uint64) uint64 {
	q, s := x^quotes, x^slashes
	return ^(((q & lows) + lows | q) & ((s & lows) + lows | s)) & highs
}

// stringEnd is the index behind the string that begins at i, -1 if it isn't
// closed. clean says that its text is canonical as it stands.
//
// What stops it is near in code and in JSON within a string, and then all of it
// in a word is found at once; in prose and in pictures it is far, and farEnd is
// faster.
func stringEnd(body []byte, i int) (end int, clean bool) {
	clean = true
	calm := 0 // words without a stop
	quote := i
	j := i + 1
	for j+8 <= len(body) {
		m := stops(binary.LittleEndian.Uint64(body[j:]))
		if m == 0 {
			j += 8
			if calm++; calm >= nearWords {
				var good bool
				if end, j, quote, good = farEnd(body, j, quote); end != 0 {
					return end, clean && good
				}
				clean, calm = clean && good, 0
			}
			continue
		}
		for {
			bit := bits.TrailingZeros64(m) &^ 7
			at := j + bit/8
			if body[at] == '"' {
				return at + 1, clean
			}
			if at+1 == len(body) {
				return -1, false
			}
			clean = clean && shortest[body[at+1]]
			if bit >= 48 { // the escape ends the word, or goes beyond
				j = at + 2
				break
			}
			if m &^= 0x8080 << bit; m == 0 {
				j += 8
				break
			}
		}
	}
	for ; j < len(body); j++ {
		switch body[j] {
		case '"':
			return j + 1, clean
		case '\\':
			if j++; j < len(body) {
				clean = clean && shortest[body[j]]
			}
		}
	}
	return -1, false
}

// farEnd goes on at j, where no escape is under way, by bytes.IndexByte, which
// looks for one byte only: the next quote is looked for once, and backslashes up
// to there. It returns the string's end or, when stops come near again, 0 and
// where to go on. quote is the next one if it isn't passed, and good says that
// the escapes on the way are canonical.
func farEnd(body []byte, j, quote int) (end, at, next int, good bool) {
	good = true
	for {
		if quote < j {
			if quote = bytes.IndexByte(body[j:], '"'); quote < 0 {
				quote = len(body)
			} else {
				quote += j
			}
		}
		k := bytes.IndexByte(body[j:quote], '\\')
		if k < 0 {
			if quote == len(body) {
				return -1, j, quote, false
			}
			return quote + 1, j, quote, good
		}
		j += k
		for j+1 < len(body) && body[j] == '\\' {
			good = good && shortest[body[j+1]]
			j += 2
		}
		if k < 8*nearWords || j+1 >= len(body) {
			return 0, j, quote, good
		}
	}
}

// nearWords is how many words are looked at before what is looked for counts as
// far.
const nearWords = 3

// next is the index of the first c at or behind j, -1 if there is none. It looks
// at a few words itself, all of whose bytes are c in word: in names and in code
// the next quote or backslash is near, and bytes.IndexByte is only faster where
// it is far.
func next(text []byte, j int, c byte, word uint64) int {
	for end := min(j+32, len(text)-8); j <= end; j += 8 {
		if hit := zeroBytes(binary.LittleEndian.Uint64(text[j:]) ^ word); hit != 0 {
			return j + bits.TrailingZeros64(hit)/8
		}
	}
	k := bytes.IndexByte(text[j:], c)
	if k < 0 {
		return -1
	}
	return j + k
}
