package prompt

import "github.com/cespare/xxhash/v2"

// idMax bounds the token ids that are fed as 4 bytes. It keeps their first
// byte below that of a mark.
const idMax = 1<<31 - 1

func (s *Scanner) feedPrompt(kind Kind) {
	switch kind {
	case Chat, Messages:
		s.feedChat()
	case Responses:
		s.feedChat()
		s.feedInput()
	case Completions:
		s.batch(fPrompt)
	case Rerank, Score:
		if s.first(s.fields[fQuery]) != 0 {
			s.mark(lQuery)
			s.batch(fQuery)
			s.batch(fDocuments)
		}
	case Embeddings, Classify, Tokenize, Generate:
		if s.first(s.fields[fMessages]) == '[' {
			s.feedChat()
			return
		}
		for _, f := range [...]field{fPrompt, fInput, fInputIDs} {
			if !s.found {
				s.batch(f)
			}
		}
	}
}

// batch feeds a field that holds a text, token ids, or a list of either. The
// first prompt of a list is chained: prompts of a batch are independent, and
// joined they would look like one that no engine ever had. Of the others only
// the length counts.
func (s *Scanner) batch(f field) {
	v := s.fields[f]
	if s.first(v) != '[' {
		s.single(v)
		return
	}
	n := 0
	for w := s.enter(v.from); !s.broken; n++ {
		if n == 0 {
			if c := s.at(s.space(w.pos)); c == '-' || c >= '0' && c <= '9' {
				s.ids(v)
				return
			}
		}
		if !w.next() {
			break
		}
		if n == 1 {
			s.begin(toCount)
		}
		s.single(w.value)
	}
	s.begin(toChain)
	s.prompts = max(s.prompts, n)
}

// single feeds one prompt.
func (s *Scanner) single(v span) {
	switch s.first(v) {
	case '"':
		s.mark(lPrompt)
		s.text(v)
		s.found = s.found || len(s.inside(v)) > 0
	case '[':
		s.ids(v)
	case '{':
		s.reading(lPrompt, v)
	}
}

// ids feeds token ids, 4 bytes each. What isn't an id takes a mark, so that it
// can't be taken for one; the engine will refuse it.
func (s *Scanner) ids(v span) {
	s.mark(lIDs)
	for i := s.space(v.from + 1); i < v.to && !s.broken; i = s.space(i) {
		switch s.body[i] {
		case ']', ',':
			i++
			continue
		}
		id, end := s.id(i)
		if end == v.to && v.cut {
			return // the number may go on
		}
		s.found = true
		if end > i && s.endsScalar(end) {
			s.room(4)
			s.buf[s.n], s.buf[s.n+1], s.buf[s.n+2], s.buf[s.n+3] = byte(id>>24), byte(id>>16), byte(id>>8), byte(id)
			s.n += 4
			i = end
			continue
		}
		t := s.valueAt(i)
		s.mark(lUnknown)
		s.number(xxhash.Sum64(s.body[t.from:t.to]))
		i = t.to
	}
}

// id reads digits up to idMax.
func (s *Scanner) id(i int) (id uint64, end int) {
	for ; i < len(s.body); i++ {
		c := s.body[i] - '0'
		if c > 9 || id*10+uint64(c) > idMax {
			break
		}
		id = id*10 + uint64(c)
	}
	return id, i
}

func (s *Scanner) endsScalar(i int) bool {
	switch s.at(i) {
	case ',', ']', ' ', '\n', '\t', '\r':
		return true
	}
	return false
}
