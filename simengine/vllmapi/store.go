package vllmapi

import (
	"encoding/json"
	"sync"
)

// store remembers answers of the Responses API, so that a client can go on from
// one by its id. The oldest go first. A nil store remembers nothing.
type store struct {
	max       int // answers
	tokensMax int // of all conversations

	mu     sync.Mutex
	byID   map[string]*stored
	order  []string // oldest first
	tokens int
}

type stored struct {
	turns  []turn
	tokens int
	body   json.RawMessage // the answer
}

// storedTokens bounds all conversations together: 64 MiB.
const storedTokens = 8 << 20

func newStore(max int) *store {
	return &store{max: max, tokensMax: storedTokens, byID: make(map[string]*stored)}
}

// put remembers an answer, unless it is larger than all may be together.
func (s *store) put(id string, turns []turn, body []byte) {
	r := &stored{turns: turns, body: body, tokens: len(body) / textBytes}
	for i := range turns {
		r.tokens += len(turns[i].content) + 1
	}
	if r.tokens > s.tokensMax {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.byID[id]; old != nil {
		s.tokens -= old.tokens
	} else {
		s.order = append(s.order, id)
	}
	s.byID[id] = r
	s.tokens += r.tokens
	for len(s.order) > s.max || s.tokens > s.tokensMax {
		oldest := s.order[0]
		s.tokens -= s.byID[oldest].tokens
		delete(s.byID, oldest)
		s.order = s.order[1:]
	}
}

func (s *store) get(id string) *stored {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

// clear forgets all answers.
func (s *store) clear() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.byID)
	s.order, s.tokens = nil, 0
}

// turns is the conversation that ends with an answer, nil if that is unknown.
func (s *store) turns(id string) []turn {
	if r := s.get(id); r != nil {
		return r.turns[:len(r.turns):len(r.turns)]
	}
	return nil
}
