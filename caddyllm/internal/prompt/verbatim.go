package prompt

import (
	"bytes"

	"github.com/cespare/xxhash/v2"
)

const (
	// maxKeys bounds the keys of one verbatim value that are looked at for
	// duplicates. The tools of an agent have some hundreds.
	maxKeys = 1 << 14
	// maxUnordered bounds the members of an object whose order is of no matter.
	maxUnordered = 32
)

// value feeds any value: strings, scalars and brackets, each with a mark.
// Commas, colons and white space say nothing beyond that. The order of members
// stays, since templates print objects as they came.
func (s *Scanner) value(v span) {
	switch c := s.first(v); {
	case c != '{' && c != '[':
		s.leaf(v)
		return
	case !s.unique(v):
		s.deduped(v)
		return
	}
	m := v.mark
	for i := int(v.from); i < int(v.to) && !s.broken; {
		var t span
		switch c := s.body[i]; c {
		case ' ', '\n', '\t', '\r', ',', ':':
			i++
		case '{', '}', '[', ']':
			if s.marked(i, m) {
				m++
			}
			s.mark(c)
			i++
		default:
			t, m = s.valueAt(i, m)
			s.leaf(t)
			i = int(t.to)
		}
	}
}

// leaf feeds a string or a scalar.
func (s *Scanner) leaf(v span) {
	switch {
	case s.first(v) == '"':
		s.mark(lString)
		s.text(v)
	case !v.cut:
		s.mark(lScalar)
		s.emit(s.bytes(v))
	}
}

// unique reports that no object in v has a key twice. It may be wrong for keys
// with escapes, and then says no.
func (s *Scanner) unique(v span) bool {
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
			if t.cut || depth < 1 || s.at(s.space(i)) != ':' {
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

// deduped feeds a value like value, but of duplicate keys only the last value,
// at the place of the first: so Python's parser makes its objects. It is slow,
// and no encoder makes such a value.
func (s *Scanner) deduped(v span) {
	c := s.first(v)
	switch c {
	case '{':
		s.mark(c)
		for _, m := range s.members(v) {
			s.mark(lString)
			s.text(m.key)
			s.deduped(m.value)
		}
	case '[':
		s.mark(c)
		for w := s.enter(v); w.next(); {
			s.deduped(w.value)
		}
	default:
		s.leaf(v)
		return
	}
	if !v.cut {
		s.mark(c + 2) // } and ] stand two behind { and [ in ASCII
	}
}

type member struct{ key, value span }

func (s *Scanner) members(v span) []member {
	var all []member
	places := make(map[string]int)
	var scratch []byte
	for w := s.enter(v); w.next(); {
		name := s.unquoted(w.key, &scratch)
		if at, ok := places[string(name)]; ok {
			all[at].value = w.value
			continue
		}
		places[string(name)] = len(all)
		all = append(all, member{w.key, w.value})
	}
	return all
}

// unordered feeds an object whose members reach the template by name, so that
// their order says nothing.
func (s *Scanner) unordered(v span) {
	if v.cut {
		return // the sum of half of it would start nothing
	}
	n := 0
	for w := s.enter(v); w.next(); {
		n++
	}
	if n > maxUnordered {
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
