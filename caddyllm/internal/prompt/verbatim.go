package prompt

// maxUnordered bounds the members of an object that are fed one by one.
const maxUnordered = 32

// value feeds any value: strings and scalars behind a mark, objects and arrays
// as JSON without white space, with canonical strings. Most clients send them so,
// and they are hashed where they lie. The order of members stays, since templates
// print objects as they came.
func (s *Scanner) value(v span) {
	switch c := s.first(v); {
	case c != '{' && c != '[':
		s.leaf(v)
	case !s.unique(v):
		s.deduped(v, 0)
	case v.clean():
		s.emit(s.bytes(v))
	default:
		s.compact(v)
	}
}

// leaf feeds a string or a scalar.
func (s *Scanner) leaf(v span) {
	switch {
	case s.first(v) == '"':
		s.mark(lString)
		s.text(v)
	case !v.cut():
		s.mark(lScalar)
		s.emit(s.bytes(v))
	}
}

// compact feeds an object or array but for its white space. What isn't taken out
// or spelled otherwise goes in one piece.
func (s *Scanner) compact(v span) {
	from, m := int(v.from), v.mark
	for i := from; i < int(v.to); {
		switch c := s.body[i]; c {
		case ' ', '\n', '\t', '\r':
			s.emit(s.body[from:i])
			i = s.spaces(i)
			from = i
		case '"':
			var t span
			if t, m = s.valueAt(i, m); !t.clean() {
				s.emit(s.body[from : i+1])
				s.text(t)
				if from = int(t.to); !t.cut() {
					from--
				}
			}
			i = int(t.to)
		case '{', '[':
			if s.marked(i, m) {
				if k := &s.marks[m]; k.clean() {
					i, m = int(k.to), k.next
					continue
				}
				m++
			}
			i++
		default:
			i++
		}
	}
	s.emit(s.body[from:v.to])
}

// few reports whether an object has few enough members to go over them one by one.
func (s *Scanner) few(v span) bool {
	n := 0
	for w := s.enter(v); w.next(); {
		n++
	}
	return n <= maxUnordered
}

// unordered feeds an object whose members reach the template by name, so that
// their order says nothing.
func (s *Scanner) unordered(v span) {
	if v.cut() {
		return // the sum of half of it would start nothing
	}
	if !s.few(v) {
		s.value(v)
		return
	}
	var sum uint64
	for w := s.enter(v); w.next(); {
		if overridden(w) {
			continue
		}
		before := s.begin(toDigest)
		s.mark(lString)
		s.text(w.key)
		s.value(w.value)
		sum += s.sum()
		s.begin(before)
	}
	s.mark(lUnordered)
	s.number(sum)
}
