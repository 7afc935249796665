package trace

import (
	"encoding/json"
	"fmt"
)

// builder collects conversations up to a bound.
type builder struct {
	trace   *Trace
	max     int
	ids     map[string]int
	opened  bool // turns may still be added to conversations by later records
	records int
}

// add takes a complete conversation; one without turns is counted as skipped.
func (b *builder) add(c Conversation) {
	b.records++
	if len(c.Turns) == 0 {
		b.trace.Skipped++
		return
	}
	if c.ID == "" {
		c.ID = fmt.Sprintf("record-%d", b.records)
	}
	// Files repeat ids; reports tell conversations apart by them.
	b.ids[c.ID]++
	if n := b.ids[c.ID]; n > 1 {
		c.ID = fmt.Sprintf("%s#%d", c.ID, n)
	}
	b.trace.Conversations = append(b.trace.Conversations, c)
}

// open takes the beginning of a conversation and says where it stands, so that
// later records can add to it; false when the bound is reached.
func (b *builder) open(c Conversation) (int, bool) {
	b.opened = true
	if len(b.trace.Conversations) >= b.max {
		return 0, false
	}
	b.add(c)
	return len(b.trace.Conversations) - 1, true
}

// full says that no further record can matter.
func (b *builder) full() bool {
	return !b.opened && len(b.trace.Conversations) >= b.max
}

// split cuts a list of chat messages into turns, each ending with the reply of
// the model that answers it.
//
// A reply that answers nothing (a greeting, a second reply in a row) is part of
// what the next turn sends. Messages after the last reply make a last turn
// without a recorded one.
func split(messages []json.RawMessage) ([]Turn, error) {
	var turns []Turn
	var pending []json.RawMessage
	asks := false
	for i, raw := range messages {
		var m struct {
			Role string `json:"role"`
		}
		if err := decode(raw, &m); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		switch m.Role {
		case "assistant":
			if asks {
				turns = append(turns, Turn{Messages: pending, Assistant: raw})
				pending, asks = nil, false
				continue
			}
		case "user", "tool", "function":
			asks = true
		case "system", "developer":
		default:
			return nil, fmt.Errorf("message %d has no role of the chat API", i)
		}
		pending = append(pending, raw)
	}
	if asks {
		turns = append(turns, Turn{Messages: pending})
	}
	return turns, nil
}
