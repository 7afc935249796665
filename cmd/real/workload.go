package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

// The load of the comparison: what people have who care for prefix caches, at
// the size that two cores bear. It is the same for every policy and every run.
//
// The support conversations of the repository give the form: four companies
// with a system prompt each, about 1,100 tokens, that all their conversations
// share, and 5 to 8 turns. Their own text is short, so that a conversation
// would lose next to nothing by moving to another server. With assistants that
// look things up, it is what is looked up that makes a prompt long: each turn
// brings passages of some 300 tokens that no other conversation has.
//
// Conversations begin one after the other and people read before they write
// again, so that what a server has cached must last while others are served.
// Without pauses and with as many conversations as workers, "the server with
// the fewest connections" is the one that just answered, and least_conn keeps
// conversations together by accident.
const (
	workloadSeed = 1
	// passageWords is a passage's length; the tokenizer makes about 1.7 tokens
	// of a word.
	passageWords = 180
	// startEvery is the time between the beginnings of conversations, and
	// pauseLeast and pauseMost bound the time between one's turns, from question
	// to question. About 16 conversations are under way at any time, which is
	// more than the servers answer at once.
	startEvery = 2500 * time.Millisecond
	pauseLeast = 3 * time.Second
	pauseMost  = 11 * time.Second
)

// workload makes the conversations.
func (h *home) workload() (*trace.Trace, error) {
	t, err := trace.ReadFile(filepath.Join(h.source, "testdata", "conversations", "support.jsonl"), trace.Options{})
	if err != nil {
		return nil, err
	}
	return lookUp(t)
}

// lookUp adds passages, beginnings and pauses to conversations.
func lookUp(t *trace.Trace) (*trace.Trace, error) {
	random := rand.New(rand.NewPCG(workloadSeed, 0))
	words, err := wordsOf(t)
	if err != nil {
		return nil, err
	}
	// In the file those of a company stand together.
	random.Shuffle(len(t.Conversations), func(i, j int) {
		t.Conversations[i], t.Conversations[j] = t.Conversations[j], t.Conversations[i]
	})
	for i := range t.Conversations {
		c := &t.Conversations[i]
		c.Start = time.Duration(i) * startEvery
		for j := range c.Turns {
			turn := &c.Turns[j]
			if j > 0 {
				turn.Gap = pauseLeast + time.Duration(random.Int64N(int64(pauseMost-pauseLeast)))
			}
			last := len(turn.Messages) - 1
			var m message
			if err := json.Unmarshal(turn.Messages[last], &m); err != nil {
				return nil, fmt.Errorf("adding a passage: %w", err)
			}
			m.Content = passage(random, words) + "\n\n" + m.Content
			if turn.Messages[last], err = json.Marshal(m); err != nil {
				return nil, fmt.Errorf("adding a passage: %w", err)
			}
		}
	}
	return t, nil
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// wordsOf are the words of the conversations, each once.
func wordsOf(t *trace.Trace) ([]string, error) {
	var all []string
	for i := range t.Conversations {
		for _, turn := range t.Conversations[i].Turns {
			for _, raw := range turn.Messages {
				var m message
				if err := json.Unmarshal(raw, &m); err != nil {
					return nil, fmt.Errorf("reading a message: %w", err)
				}
				all = append(all, strings.Fields(m.Content)...)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func passage(random *rand.Rand, words []string) string {
	var b strings.Builder
	for i := range passageWords {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[random.IntN(len(words))])
	}
	return b.String()
}
