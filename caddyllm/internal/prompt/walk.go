package prompt

import "bytes"

// walk goes through the members of an object or the elements of an array.
type walk struct {
	l       *lexer
	pos     int   // behind what was read
	mark    int32 // the first landmark behind pos
	value   span
	key     span // of an object's member, quotes included
	object  bool
	started bool
}

// enter starts a walk through an object or array.
func (l *lexer) enter(v span) walk {
	w := walk{l: l, pos: int(v.from) + 1, mark: v.mark, object: l.at(int(v.from)) == '{'}
	if l.marked(int(v.from), v.mark) {
		w.mark++
	}
	return w
}

// next goes to the next value. A value that the body's end cuts off is still
// given, as the last.
func (w *walk) next() bool {
	l := w.l
	if l.broken || w.pos >= len(l.body) {
		return false
	}
	closing := byte(']')
	if w.object {
		closing = '}'
	}
	i := l.space(w.pos)
	if !w.started && l.at(i) == closing || w.started && l.at(i) != ',' {
		w.pos = i + 1
		if l.at(i) != closing {
			l.fail(i)
			w.pos = len(l.body)
		}
		return false
	}
	if w.started {
		i = l.space(i + 1)
	}
	w.started = true
	if w.object {
		if i = w.member(i); i < 0 {
			w.pos = len(l.body)
			return false
		}
	}
	if i >= len(l.body) {
		l.fail(i)
		w.pos = i
		return false
	}
	w.value, w.mark = l.valueAt(i, w.mark)
	w.pos = int(w.value.to)
	return !l.broken
}

// member reads a key and its colon, and returns the index of the value, or -1.
func (w *walk) member(i int) int {
	l := w.l
	if l.at(i) != '"' {
		l.fail(i)
		return -1
	}
	w.key, w.mark = l.valueAt(i, w.mark)
	if w.key.cut {
		return -1
	}
	i = l.space(int(w.key.to))
	if l.at(i) != ':' {
		l.fail(i)
		return -1
	}
	return l.space(i + 1)
}

// maxName is longer than any name of interest.
const maxName = 48

// name is the current member's key, unescaped; valid until the next call for
// any walk. Keys too long to be of interest come as they are.
func (w *walk) name() []byte {
	raw := w.l.body[w.key.from+1 : w.key.to-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	out := w.l.name[:0]
	for len(raw) > 0 && len(out)+4 <= maxName {
		if raw[0] != '\\' {
			out = append(out, raw[0])
			raw = raw[1:]
			continue
		}
		n := 0
		if out, n = appendEscape(out, raw); n == 0 {
			return nil
		}
		raw = raw[n:]
	}
	if len(raw) > 0 {
		return w.l.body[w.key.from+1 : w.key.to-1]
	}
	return out
}
