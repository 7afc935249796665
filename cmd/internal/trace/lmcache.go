package trace

import (
	"encoding/json"
	"errors"
	"time"
)

// wholeBytes is how much of a session's first input a later one must begin
// with to count as the whole prompt rather than as the turn's new text.
const wholeBytes = 256

// parseLMCache gathers the turns of a session, which stand in a file one a
// line and possibly among those of others. Agents of this kind keep the whole
// dialogue in one user message, so an input that begins like the session's
// first is a prompt of its own and not an addition.
func parseLMCache(b *builder) func(json.RawMessage) error {
	type session struct {
		index int
		last  int64
		head  string
	}
	sessions := make(map[string]*session)
	var origin int64
	return func(record json.RawMessage) error {
		var r struct {
			Session   string `json:"session"`
			SessionID string `json:"session_id"`
			Timestamp int64  `json:"timestamp"`
			Input     string `json:"input"`
			Output    string `json:"output"`
		}
		if err := decode(record, &r); err != nil {
			return err
		}
		id := r.Session
		if id == "" {
			id = r.SessionID
		}
		if id == "" {
			return errors.New("a turn names no session")
		}
		turn := Turn{Messages: []json.RawMessage{text("user", r.Input)}}
		if r.Output != "" {
			turn.Assistant = text("assistant", r.Output)
		}
		s, ok := sessions[id]
		if !ok {
			if len(sessions) == 0 {
				origin = r.Timestamp
			}
			index, room := b.open(Conversation{ID: id, Start: microseconds(r.Timestamp - origin), Turns: []Turn{turn}})
			if !room {
				index = -1
			}
			sessions[id] = &session{index: index, last: r.Timestamp, head: r.Input[:min(wholeBytes, len(r.Input))]}
			return nil
		}
		if s.index < 0 {
			return nil
		}
		turn.Whole = len(r.Input) >= len(s.head) && r.Input[:len(s.head)] == s.head
		// Parallel tool runs are logged out of order by a little.
		turn.Gap = microseconds(r.Timestamp - s.last)
		s.last = max(s.last, r.Timestamp)
		c := &b.trace.Conversations[s.index]
		c.Turns = append(c.Turns, turn)
		return nil
	}
}

// microseconds is zero for what is negative or longer than a year.
func microseconds(us int64) time.Duration {
	const year = int64(365 * 24 * time.Hour / time.Microsecond)
	if us < 0 || us > year {
		return 0
	}
	return time.Duration(us) * time.Microsecond
}
