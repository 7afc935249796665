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
	// maxLandmarks bounds their memory to 1 MiB. A chat has some five for each
	// message; behind the bound the walks find the ends of values themselves.
	maxLandmarks = 1 << 16
	// From maxShort landmarks on, only values of at least longValue bytes become
	// one.
	maxShort  = maxLandmarks / 2
	longValue = 64
	// maxBytes is what indexes of 32 bits reach. No body is kept that long.
	maxBytes = 1<<31 - 16
)

// landmark is a string, object or array of the body. Landmarks are in the order
// in which their values begin.
type landmark struct {
	from, to int32
	next     int32 // the first landmark behind it
	state
}

// survey is the first pass: one look at each byte, which finds where the body's
// strings, objects and arrays end, whether brackets match, what is canonical as
// it stands, and nothing else. Walks then go over values in one step. It returns
// the index behind the outermost value.
func (l *lexer) survey(i int) int {
	body := l.body
	l.marks = l.marks[:0]
	l.depth, l.dirty, l.quote = 0, -1, 0
	var (
		inside bool   // a string is open
		from   int    // where it begins, or the one before did
		gap    = i    // the first byte outside of strings that wasn't looked at
		carry  uint64 // 1 if the first byte is escaped
		rest   [stride]byte
	)
	for at := i; at < len(body); {
		b := &rest
		if at+stride <= len(body) {
			b = (*[stride]byte)(body[at:])
		} else {
			n := copy(rest[:], body[at:])
			clear(rest[n:])
		}
		quote, slash := look(b)
		escaped := carry
		if carry = 0; slash != 0 {
			escaped, carry = escapedBy(slash, escaped)
		}
		closing := quote &^ escaped // or opening
		odd := uint64(0)            // escapes that aren't canonical
		if closing != 0 || l.dirty < from {
			closing = inOrder(closing)
			for m := escaped &^ (quote | slash); m != 0; m &= m - 1 {
				if p := place(bits.TrailingZeros64(m)) & (stride - 1); !shortest[b[p]] {
					odd |= 1 << p
				}
			}
		}
		for m := closing; m != 0; m &= m - 1 {
			bit := bits.TrailingZeros64(m)
			p := at + bit
			if !inside {
				if inside, from = true, p; body[gap] == ':' || body[gap] == ',' {
					if p-gap == 1 {
						continue
					}
					if p-gap == 2 && body[gap+1] == ' ' { // as Python writes it
						l.dirty = gap + 1
						continue
					}
				}
				if end := l.between(gap, p); end >= 0 {
					return end
				}
				continue
			}
			if before := odd & (1<<bit - 1); before != 0 {
				l.dirty = max(l.dirty, at+bits.Len64(before)-1)
			}
			l.noteString(from, p+1, l.since(from))
			inside, gap = false, p+1
		}
		if odd != 0 && inside {
			l.dirty = max(l.dirty, at+bits.Len64(odd)-1)
		}
		at += stride
		if bits.OnesCount64(quote|slash) <= few && carry == 0 {
			at = l.skip(at)
		}
	}
	if inside {
		how := isCut
		if carry == 0 {
			how |= l.since(from)
		}
		l.noteString(from, len(body), how)
	} else if end := l.between(gap, len(body)); end >= 0 {
		return end
	}
	l.broken = l.broken || l.complete
	for ; l.depth > 0; l.depth-- {
		if slot := l.stack[l.depth] >> 1; slot < maxLandmarks {
			m := &l.marks[slot]
			m.to, m.next, m.state = int32(len(body)), int32(len(l.marks)), isCut
		}
	}
	return len(body)
}

func (l *lexer) noteString(from, end int, how state) {
	if n := len(l.marks); n < maxShort || end-from >= longValue && n < maxLandmarks {
		l.marks = append(l.marks, landmark{int32(from), int32(end), int32(n + 1), how})
	}
}

// since is isClean if all from there on is canonical.
func (l *lexer) since(from int) state {
	if l.dirty < from {
		return isClean
	}
	return 0
}

// between looks at what stands outside of strings, from k on. If the outermost
// value ends there, or something is wrong, it returns where, else -1.
func (l *lexer) between(k, to int) int {
	body := l.body
	for k < to {
		switch c := body[k]; {
		case c == ',' || c == ':':
		case c|0x20 == '{': // or [
			if l.depth++; l.depth > maxDepth {
				l.broken = true
				return k
			}
			l.open(k, c == '{')
		case c|0x20 == '}': // or ]
			if l.depth == 0 || !l.close(k+1, c == '}') {
				l.broken = true
				return k
			}
			if l.depth--; l.depth == 0 {
				return k + 1
			}
		case c <= ' ':
			l.dirty = k
		case c == '\\':
			l.broken = true // it would take part in the look at strings
			return k
		case k+8 <= to: // a number, and maybe many of them
			if w := binary.LittleEndian.Uint64(body[k:]); w&(highs|highs>>1) == 0 {
				if (w-('!'*ones))&highs != 0 {
					l.dirty = k + 7 // or before
				}
				k += 7
			}
		}
		k++
	}
	return -1
}

// open notes an object or array that begins at i.
func (l *lexer) open(i int, brace bool) {
	slot := int32(len(l.marks))
	if slot < maxLandmarks {
		l.marks = append(l.marks, landmark{from: int32(i)})
	}
	l.stack[l.depth] = slot << 1
	if brace {
		l.stack[l.depth]++
	}
}

func (l *lexer) close(end int, brace bool) bool {
	top := l.stack[l.depth]
	if brace != (top&1 == 1) {
		return false
	}
	slot := top >> 1
	if slot == maxLandmarks {
		return true
	}
	m := &l.marks[slot]
	if slot >= maxShort && end-int(m.from) < longValue {
		l.marks = l.marks[:slot] // nothing in it can be long either
		return true
	}
	m.to, m.next, m.state = int32(end), int32(len(l.marks)), l.since(int(m.from))
	return true
}

const (
	// few is how many quotes and backslashes in a stride make it likely that the
	// next one is as quickly found with bytes.IndexByte, which is faster over a
	// distance, but takes a call for each and looks for one of the two only.
	few = 2
	// near is the distance below which it isn't, bytes.
	near = 16
)

// skip goes on at i, where no escape is under way, while backslashes are far
// from each other, as in prose and in pictures. It returns where the next quote
// or backslash may be.
func (l *lexer) skip(i int) int {
	body := l.body
	for i < len(body) {
		if l.quote < i {
			l.quote = len(body)
			if k := bytes.IndexByte(body[i:], '"'); k >= 0 {
				l.quote = i + k
			}
		}
		k := bytes.IndexByte(body[i:l.quote], '\\')
		if k < 0 {
			return l.quote
		}
		i += k
		if k < near {
			return i
		}
		for i+1 < len(body) && body[i] == '\\' {
			if i++; !shortest[body[i]] {
				l.dirty = i
			}
			i++
		}
		if i+1 == len(body) && body[i] == '\\' {
			return i
		}
	}
	return i
}
