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
	quotes  = '"' * ones
	slashes = '\\' * ones
)

// zeroBytes has the high bit set of the first zero byte of x and maybe of
// later ones, and is 0 where there is none (Lamport 1975, Mycroft 1987).
func zeroBytes(x uint64) uint64 { return (x - ones) & ^x & highs }

// stringEnd is the index behind the string that begins at i, -1 if it isn't
// closed. clean says that its text is canonical as it stands.
//
// What stops it is near in code, and then looking at a few words for both bytes
// at once is fastest; in prose and in pictures it is far, and bytes.IndexByte
// is, which looks for one byte only. So the next quote is looked for once, and
// backslashes up to there. What was far is taken to be far again.
func stringEnd(body []byte, i int) (end int, clean bool) {
	clean = true
	quote := i // the next one, if it isn't passed
	near := nearWords * 8
	for j := i + 1; ; {
		var hit uint64
		from := j
		for end := min(j+near, len(body)-7); j < end; j += 8 {
			x := binary.LittleEndian.Uint64(body[j:])
			if hit = zeroBytes(x^quotes) | zeroBytes(x^slashes); hit != 0 {
				break
			}
		}
		if hit != 0 {
			j += bits.TrailingZeros64(hit) / 8
		} else {
			if quote < j {
				if quote = bytes.IndexByte(body[j:], '"'); quote < 0 {
					quote = len(body)
				} else {
					quote += j
				}
			}
			if k := bytes.IndexByte(body[j:quote], '\\'); k >= 0 {
				j += k
			} else if j = quote; j == len(body) {
				return -1, false
			}
		}
		if body[j] == '"' {
			return j + 1, clean
		}
		if near = nearWords * 8; j-from >= near {
			near = 0
		}
		for j+1 < len(body) && body[j] == '\\' {
			clean = clean && shortest[body[j+1]]
			j += 2
		}
		if j+1 >= len(body) {
			if j < len(body) && body[j] == '"' {
				return j + 1, clean
			}
			return -1, false
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
