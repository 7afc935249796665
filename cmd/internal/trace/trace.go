// Package trace reads files of recorded conversations into one form, whatever
// project wrote them, so that a replay needs to know only one.
//
// Start with Conversation and Turn, then Read; formats.go has one function for
// each form of record. A file is a sequence of records, either JSON values one
// after the other (JSON Lines) or the elements of one JSON array, plain or
// gzip-compressed. The form of a record is told by the fields of the first.
package trace

import (
	"encoding/json"
	"time"
)

// Conversation is one client's dialogue: its turns are sent one after the
// other, each with everything that was said before.
type Conversation struct {
	// ID is unique within a trace where the file's own are; it is made from
	// the record's number where there is none.
	ID string
	// Start is when the first turn was sent, since the first of the trace;
	// zero where the file has no times.
	Start time.Duration
	// Turns has at least one element.
	Turns []Turn
	// Tools is the JSON array of tool definitions sent with every turn; nil
	// for none.
	Tools json.RawMessage
}

// Turn is one request and the reply that was recorded for it.
type Turn struct {
	// Messages are OpenAI chat messages, as they stood in the file, that the
	// request adds to what went before. At least one.
	Messages []json.RawMessage
	// Whole says that Messages are the entire prompt and nothing of the
	// earlier turns is sent with them.
	Whole bool
	// Assistant is the recorded reply, a chat message; nil where the file has
	// none.
	Assistant json.RawMessage
	// Gap is the time from the start of the previous turn's request to the
	// start of this one's, in recorded time; zero where the file has no times.
	Gap time.Duration
}

// Trace is what a file holds.
type Trace struct {
	// Format is the name of the form of the records, one of Formats.
	Format string
	// Conversations are in the order of the file.
	Conversations []Conversation
	// Skipped counts records that are well formed but ask a model nothing.
	Skipped int
}

// Requests is the number of turns of all conversations.
func (t *Trace) Requests() int {
	n := 0
	for i := range t.Conversations {
		n += len(t.Conversations[i].Turns)
	}
	return n
}
