// Package workload is what clients ask of a virtual cluster: sessions of
// turns, each prompt known by what it consists of instead of by its text.
//
// Start with Workload, then Open, which reads a file or generates what a name
// such as "tenants:prompts=50" describes. content.go makes chains of block
// hashes in any unit, tokens for engines and bytes for proxies. Contents of
// prompts never exist as text here, so a workload of a million tokens takes a
// few kilobytes.
package workload

import (
	"time"
)

// Workload is a recorded or generated run of requests.
type Workload struct {
	// Name is what reports call it.
	Name string
	// Sessions are in the order of their starts.
	Sessions []Session
	// Closed says that a turn is asked for its Gap after the answer to the turn
	// before; else all turns have their times, whatever becomes of them.
	Closed bool
	// Span is the time in which sessions start. Rates are changed by
	// stretching it.
	Span time.Duration
	// KVTokens is the cache size that an engine needs to serve this, tokens;
	// zero leaves the preset's.
	KVTokens int

	numberings []*numbering
}

// Session is one client's turns, one after the other.
type Session struct {
	Start time.Duration // since the beginning, less than Span
	Turns []Turn        // at least one
	// Conversation is the same number, from 1, for sessions that are parts of one
	// conversation, as in files that know of requests alone; 0 for one that is all of it.
	Conversation int
}

// Turn is one request.
type Turn struct {
	// Content begins with the prompt and goes on with its answer.
	Content *Content
	// Prompt and Output are lengths in tokens, at least 1.
	Prompt, Output int
	// Bytes is the prompt's length in bytes.
	Bytes int
	// Gap is the time from the answer before (closed) or from the request
	// before (open) to this request.
	Gap time.Duration
}

// Requests is the number of turns of all sessions.
func (w *Workload) Requests() int {
	n := 0
	for i := range w.Sessions {
		n += len(w.Sessions[i].Turns)
	}
	return n
}

// Rate is the number of requests a second at the recorded or generated pace.
func (w *Workload) Rate() float64 { return float64(w.Requests()) / w.Span.Seconds() }

// Shareable is the share of prompt tokens that a cache of infinite size,
// common to all engines, would supply: the bound of any routing. It counts
// full blocks of the given tokens, in the order of the sessions' starts.
func (w *Workload) Shareable(block int) float64 {
	var seen []bool // by number
	hit, all := 0, 0
	for i := range w.Sessions {
		for j := range w.Sessions[i].Turns {
			t := &w.Sessions[i].Turns[j]
			chain := w.TokenNumbers(t.Content, block)
			own := chain[:min((t.Prompt-1)/block, len(chain))]
			n := 0
			for n < len(own) && int(own[n]) < len(seen) && seen[own[n]] {
				n++
			}
			hit += n * block
			all += t.Prompt
			for _, b := range chain[n:min((t.Prompt+t.Output)/block, len(chain))] {
				for int(b) >= len(seen) {
					seen = append(seen, false)
				}
				seen[b] = true
			}
		}
	}
	return float64(hit) / float64(max(all, 1))
}

// secondsPerToken is about what an engine under load takes for each.
const secondsPerToken = 0.015

// sessionLength is about how long a session takes, in seconds.
func (w *Workload) sessionLength() float64 {
	sum := 0.0
	for i := range w.Sessions {
		for j := range w.Sessions[i].Turns {
			t := &w.Sessions[i].Turns[j]
			sum += t.Gap.Seconds() + secondsPerToken*float64(t.Output)
		}
	}
	return sum / float64(len(w.Sessions))
}
