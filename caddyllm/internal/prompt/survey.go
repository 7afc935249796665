package prompt

import (
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
	l.marks = l.marks[:0]
	l.depth, l.dirty = 0, -1
	var (
		body  = l.body
		from  = -1        // where the string begins that is open, if one is
		gap   = i         // the first byte outside of strings that wasn't looked at
		carry = uint64(0) // 1 if the first byte is escaped
	)
	for at := i; ; at += stride {
		stop := seek(body, at, carry)
		at, carry = stop.at, stop.carry
		if stop.quotes == 0 {
			if at >= len(body) {
				break
			}
			l.dirty = at
			continue
		}
		odd := stop.odd
		for m := stop.quotes; m != 0; m &= m - 1 {
			p := at + bits.TrailingZeros64(m)
			if from < 0 {
				from = p
				if c := body[gap]; p-gap != 1 || c != ':' && c != ',' {
					if end := l.between(gap, p); end >= 0 {
						return end
					}
				}
				if m &= m - 1; m == 0 {
					break
				}
				p = at + bits.TrailingZeros64(m)
			}
			if odd != 0 {
				l.dirty = max(l.dirty, lastOf(odd, at, p))
			}
			l.noteString(from, p+1, l.since(from))
			from, gap = -1, p+1
		}
		if odd != 0 && from >= 0 {
			l.dirty = max(l.dirty, lastOf(odd, at, at+stride))
		}
	}
	if from >= 0 {
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

// lastOf is where the last of a stride's bits before p stands, -1 if there is none.
func lastOf(m uint64, at, p int) int {
	if m &= 1<<(p-at) - 1; m == 0 {
		return -1
	}
	return at + bits.Len64(m) - 1
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
	if to-k == 2 && body[k+1] == ' ' && (body[k] == ':' || body[k] == ',') { // as Python writes
		l.dirty = k + 1
		return -1
	}
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
			if w := binary.LittleEndian.Uint64(body[k:]); w&(0xc0*ones) == 0 {
				if (w-'!'*ones)&(0x80*ones) != 0 {
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
