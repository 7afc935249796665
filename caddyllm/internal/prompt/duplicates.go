package prompt

import (
	"bytes"
	"iter"

	"github.com/cespare/xxhash/v2"
)

const (
	// fewKeys is how many keys of an object are compared with each other.
	fewKeys = 32
	// maxKeys bounds the keys of one verbatim value that are looked at for
	// duplicates. The tools of an agent have some hundreds.
	maxKeys = 1 << 14
)

// unique reports that no object in v has a key twice. It may be wrong for keys
// that aren't canonical, and then says no.
func (s *Scanner) unique(v span) bool {
	if s.marked(int(v.from), v.mark) && s.marks[v.mark].next <= maxShort {
		if unique, known := s.uniqueOfFew(v.mark, s.marks[v.mark].next); known {
			return unique
		}
	}
	return s.uniqueOfMany(v)
}

// uniqueOfFew goes over landmarks only. It doesn't know of objects with many
// keys.
func (s *Scanner) uniqueOfFew(m, end int32) (unique, known bool) {
	var seen [fewKeys]uint64
	for ; m < end; m++ {
		object := &s.marks[m]
		if s.body[object.from] != '{' {
			continue
		}
		n, bloom := 0, uint64(0)
		for k := m + 1; k < object.next; {
			key := &s.marks[k]
			colon := s.space(int(key.to))
			if s.at(colon) != ':' || key.cut() {
				k = key.next // no JSON, or the end
				continue
			}
			if !key.clean() {
				return false, true
			}
			h := xxhash.Sum64(s.body[key.from+1 : key.to-1])
			if bit := uint64(1) << (h >> 58); bloom&bit == 0 {
				bloom |= bit
			} else {
				for _, other := range seen[:n] {
					if other == h {
						return false, true
					}
				}
			}
			if n == fewKeys {
				return false, false
			}
			seen[n] = h
			n++
			if k++; k < object.next && s.marked(s.space(colon+1), k) {
				k = s.marks[k].next
			}
		}
	}
	return true, true
}

// uniqueOfMany goes over all of v, and remembers keys with the object they are in.
func (s *Scanner) uniqueOfMany(v span) bool {
	s.keys.reset()
	m := v.mark
	depth := 0 // from here on, the survey's stack is free
	for i := int(v.from); i < int(v.to) && !s.broken; {
		switch s.body[i] {
		case '{', '[':
			if s.marked(i, m) {
				m++
			}
			if depth++; depth > maxDepth {
				return true
			}
			s.stack[depth] = int32(i)
			i++
		case '}', ']':
			depth--
			i++
		case '"':
			var t span
			t, m = s.valueAt(i, m)
			i = int(t.to)
			if t.cut() || depth < 1 || s.at(s.space(i)) != ':' {
				continue
			}
			raw := s.inside(t)
			if bytes.IndexByte(raw, '\\') >= 0 {
				return false
			}
			if s.keys.has(xxhash.Sum64(raw) ^ uint64(s.stack[depth])*0x9e3779b97f4a7c15) {
				return false
			}
		default:
			i++
		}
	}
	return true
}

// keySet remembers up to maxKeys hashes, by open addressing.
type keySet struct {
	slots []uint64
	n     int
}

func (k *keySet) reset() {
	if len(k.slots) > 1024 { // of a large schema; most are small
		k.slots = k.slots[:1024]
	}
	clear(k.slots)
	k.n = 0
}

// has adds a hash and reports whether it was there before.
func (k *keySet) has(h uint64) bool {
	if k.n >= maxKeys {
		return false
	}
	if 2*k.n >= len(k.slots) {
		k.grow()
	}
	h |= 1 // 0 is an empty slot
	if !k.add(h) {
		return true
	}
	k.n++
	return false
}

func (k *keySet) add(h uint64) bool {
	at := h >> 32
	for {
		switch slot := &k.slots[at&uint64(len(k.slots)-1)]; *slot {
		case h:
			return false
		case 0:
			*slot = h
			return true
		}
		at++
	}
}

func (k *keySet) grow() {
	before := k.slots
	size := max(2*len(before), 256)
	if cap(before) >= size {
		// The memory behind the slots is that of an earlier, larger table.
		before = append([]uint64(nil), before...)
		k.slots = k.slots[:size]
		clear(k.slots)
	} else {
		k.slots = make([]uint64, size)
	}
	for _, h := range before {
		if h != 0 {
			k.add(h)
		}
	}
}

// maxDeduped is how deep in a value duplicate keys are looked for: each level is
// one more search for the ends of what is in it. Schemas have a handful.
const maxDeduped = 32

// deduped feeds an object or array like compact, but of duplicate keys only the
// last value, at the place of the first: so Python's parser makes its objects. It
// is slow, and no encoder makes such a value.
func (s *Scanner) deduped(v span, depth int) {
	if depth == maxDeduped {
		s.compact(v)
		return
	}
	s.emit(s.body[v.from : v.from+1])
	n := 0
	feed := func(w span) {
		if c := s.first(w); c == '{' || c == '[' {
			s.deduped(w, depth+1)
		} else {
			s.plain(w)
		}
	}
	if s.first(v) == '{' {
		for m := range s.members(v) {
			s.begins(m.key, &n)
			feed(m.value)
		}
	} else {
		for w := s.enter(v); w.next(); {
			s.separate(&n)
			feed(w.value)
		}
	}
	if !v.cut() {
		s.emit(s.body[v.to-1 : v.to])
	}
}

// without feeds an object like value, but for members that the model isn't shown
// and that are new from turn to turn.
func (s *Scanner) without(v span, which func(name []byte) bool) {
	s.emit(s.body[v.from : v.from+1])
	n, unique := 0, s.unique(v)
	for m := range s.members(v) {
		if which(s.nameOf(m.key)) {
			continue
		}
		s.begins(m.key, &n)
		switch c := s.first(m.value); {
		case c != '{' && c != '[':
			s.plain(m.value)
		case unique:
			s.compact(m.value)
		default:
			s.deduped(m.value, 0)
		}
	}
	s.emit(s.body[v.to-1 : v.to])
}

var comma, colon, quote = []byte{','}, []byte{':'}, []byte{'"'}

// quoted feeds a string with its quotes.
func (s *Scanner) quoted(v span) {
	s.emit(quote)
	s.text(v)
	if !v.cut() {
		s.emit(quote)
	}
}

// plain feeds a string or a scalar as it is in an object.
func (s *Scanner) plain(v span) {
	if s.first(v) == '"' {
		s.quoted(v)
		return
	}
	s.emit(s.bytes(v))
}

// begins feeds what stands before a member's value, of which n were before.
func (s *Scanner) begins(key span, n *int) {
	s.separate(n)
	s.quoted(key)
	s.emit(colon)
}

func (s *Scanner) separate(n *int) {
	if *n > 0 {
		s.emit(comma)
	}
	*n++
}

type member struct{ key, value span }

// members are those of an object, each of its first maxKeys with the last value of
// its key among these, and then all that follow.
func (s *Scanner) members(v span) iter.Seq[member] {
	return func(yield func(member) bool) {
		var all []member
		places := make(map[string]int)
		var scratch []byte
		w := s.enter(v)
		more := w.next()
		for n := 0; more && n < maxKeys; n++ {
			name := s.unquoted(w.key, &scratch)
			if at, ok := places[string(name)]; ok {
				all[at].value = w.value
			} else {
				places[string(name)] = len(all)
				all = append(all, member{w.key, w.value})
			}
			more = w.next()
		}
		for _, m := range all {
			if !yield(m) {
				return
			}
		}
		for ; more; more = w.next() {
			if !yield(member{w.key, w.value}) {
				return
			}
		}
	}
}

// overridden reports whether a later member has the name of the current one.
func overridden(w walk) bool {
	later := w
	name := w.name()
	if len(name) <= maxName {
		name = append(make([]byte, 0, maxName), name...)
	}
	for later.next() {
		if bytes.Equal(later.name(), name) {
			return true
		}
	}
	return false
}
