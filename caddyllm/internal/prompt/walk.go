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
	i := l.space(w.pos)
	if l.broken || i >= len(l.body) {
		return false
	}
	switch c := l.body[i]; {
	case c == ']' || c == '}':
		w.pos = i + 1
		return false
	case w.started && c != ',':
		return w.fail(i)
	case w.started:
		i = l.space(i + 1)
	}
	w.started = true
	if w.object {
		if l.at(i) != '"' {
			return w.fail(i)
		}
		w.key, w.mark = l.valueAt(i, w.mark)
		if w.key.cut() {
			return w.fail(len(l.body))
		}
		i = l.space(int(w.key.to))
		if l.at(i) != ':' {
			return w.fail(i)
		}
		i = l.space(i + 1)
	}
	if i >= len(l.body) {
		return w.fail(i)
	}
	w.value, w.mark = l.valueAt(i, w.mark)
	w.pos = int(w.value.to)
	return !l.broken
}

// fail ends the walk at i, where the body is cut off or wrong.
func (w *walk) fail(i int) bool {
	w.l.fail(i)
	w.pos = len(w.l.body)
	return false
}

// note puts the values of an object's members into out, by the field that their
// names are, the last of duplicates (see again), and returns a bit for each field
// that there is. It is a walk as well, one whose state stays in registers.
func note[F ~uint8](l *lexer, v span, of func([]byte) F, out []span) (noted uint64) {
	body, marks, m := l.body, l.marks, v.mark
	if l.marked(int(v.from), m) {
		m++
	}
	i, c := l.token(int(v.from) + 1)
	if c == '}' {
		return 0
	}
	for c == '"' {
		var key, value span
		if int(m) < len(marks) && int(marks[m].from) == i {
			k := &marks[m]
			key, m = span{k.from, k.to, m, k.state}, k.next
		} else {
			key = l.unmarked(i, m)
		}
		if i, c = l.token(int(key.to)); key.cut() || c != ':' {
			break
		}
		if i, c = l.token(i + 1); i >= len(body) {
			break
		}
		if int(m) < len(marks) && int(marks[m].from) == i {
			k := &marks[m]
			value, m = span{k.from, k.to, m, k.state}, k.next
		} else {
			value = l.unmarked(i, m)
		}
		name := body[key.from+1 : key.to-1]
		if !key.clean() {
			name = l.spelled(name)
		}
		if f := of(name); f != 0 && (noted&(1<<f) == 0 || l.filled(value) || l.again(name, l.keys[f%maxFields])) {
			out[f], l.keys[f%maxFields] = value, key
			noted |= 1 << f
		}
		i, c = l.token(int(value.to))
		if l.broken || c == '}' {
			return noted
		}
		if c != ',' {
			break
		}
		i, c = l.token(i + 1)
	}
	l.fail(i)
	return noted
}

// again reports whether the member of this key before the one at hand has the same
// name: then this one is a duplicate, of which the last counts. Of several names for
// one thing, one that says nothing doesn't take from what another one said: clients
// write all members of a structure out.
func (l *lexer) again(name []byte, key span) bool {
	if raw := l.inside(key); key.clean() {
		return bytes.Equal(raw, name)
	}
	name = append(make([]byte, 0, maxName), name...) // it may be where spelled writes
	return bytes.Equal(l.nameOf(key), name)
}

const (
	// maxName is longer than any name of interest.
	maxName = 48
	// maxFields is how many fields note can tell of.
	maxFields = 64
)

// name is the current member's key in canonical form, which no name of interest
// has escapes in; valid until the next call for any walk. Keys too long to be of
// interest may come as they are.
func (w *walk) name() []byte { return w.l.nameOf(w.key) }

// nameOf is that of a key.
func (l *lexer) nameOf(key span) []byte {
	raw := l.body[key.from+1 : key.to-1]
	if key.clean() {
		return raw
	}
	return l.spelled(raw)
}

func (l *lexer) spelled(raw []byte) []byte {
	out := l.name[:0]
	for rest := raw; len(rest) > 0; {
		if len(out)+maxCanonical > maxName {
			return raw
		}
		if rest[0] != '\\' {
			out = append(out, rest[0])
			rest = rest[1:]
			continue
		}
		n := 0
		if out, n = canonical(out, rest); n == 0 {
			return nil
		}
		rest = rest[n:]
	}
	return out
}
