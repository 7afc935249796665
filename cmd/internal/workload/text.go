package workload

import (
	"encoding/json"
	"math"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

// textParams are those of a file of conversations, behind a colon.
var textParams = []Param{
	{"think", 0, "mean seconds between answer and next message; 0 takes the file's times, 3 where it has none"},
}

// readText makes sessions of a file of conversations. Each is played by several
// clients, who share what several conversations of the file begin with, and
// nothing else.
func readText(path, rest string, o Options) (*Workload, error) {
	p, err := parse(textParams, rest)
	if err != nil {
		return nil, err
	}
	t, err := trace.ReadFile(path, trace.Options{})
	if err != nil {
		return nil, err
	}
	shared := commonBeginnings(t.Conversations)
	s := newSource(o.Seed)
	w := &Workload{Closed: true}
	at, mean := 0.0, float64(t.Requests())/float64(len(t.Conversations))
	for made := 0; made < o.Requests; {
		for _, i := range s.Perm(len(t.Conversations)) {
			at += s.ExpFloat64() * mean
			player := player{shared: shared, salt: s.fresh()}
			turns := player.play(s, &t.Conversations[i], p["think"])
			made += len(turns)
			w.Sessions = append(w.Sessions, Session{Start: seconds(at), Turns: turns})
			if made >= o.Requests {
				break
			}
		}
	}
	w.Span = seconds(at)
	return w, nil
}

// pieceBytes is the length of the pieces that text is compared by.
const pieceBytes = 256

// commonBeginnings finds the beginnings, in pieces, that at least two of the
// conversations have: the chained hashes of their last pieces.
func commonBeginnings(all []trace.Conversation) map[uint64]bool {
	owner := make(map[uint64]int)
	shared := make(map[uint64]bool)
	for i := range all {
		p := player{note: func(h uint64) {
			if first, ok := owner[h]; ok && first != i {
				shared[h] = true
			} else {
				owner[h] = i
			}
		}}
		p.play(newSource(0), &all[i], 0)
	}
	return shared
}

// player makes contents of one conversation.
type player struct {
	shared map[uint64]bool
	salt   uint64
	note   func(chained uint64)

	thread  *thread
	chained uint64
}

// put adds a text. Equal texts behind equal beginnings are the same.
func (p *player) put(raw []byte) {
	for len(raw) > 0 {
		n := min(pieceBytes, len(raw))
		p.thread.add(p.piece(raw[:n]))
		raw = raw[n:]
	}
}

func (p *player) piece(raw []byte) Segment {
	p.chained = mix(p.chained, identity(raw))
	if p.note != nil {
		p.note(p.chained)
	}
	id := p.chained
	if !p.shared[id] {
		id = mix(id, p.salt)
	}
	return textSegment(id, len(raw))
}

func (p *player) play(s source, c *trace.Conversation, think float64) []Turn {
	var turns []Turn
	begin := func() {
		if p.thread != nil {
			turns = append(turns, p.thread.turns...)
		}
		p.thread, p.chained = newThread(), 0
		p.put(c.Tools)
	}
	begin()
	for i := range c.Turns {
		turn := &c.Turns[i]
		if turn.Whole && i > 0 {
			begin()
		}
		for _, m := range turn.Messages {
			if role(m) == "user" && len(p.thread.turns) == 0 {
				p.thread.content.user = len(p.thread.content.segments)
			}
			p.put(m)
		}
		p.answer(s, turn.Assistant, Turn{Gap: gap(s, turn.Gap, think, i)})
	}
	return append(turns, p.thread.turns...)
}

// unrecordedAnswer is the length of answers that a file doesn't have, bytes.
const unrecordedAnswer = 800

// answer ends the turn's prompt and adds its answer.
func (p *player) answer(s source, raw json.RawMessage, turn Turn) {
	t := p.thread
	turn.Content, turn.Prompt, turn.Bytes = t.content, t.tokens, t.bytes
	if raw != nil {
		p.put(raw)
	} else {
		t.add(textSegment(s.fresh(), unrecordedAnswer))
	}
	turn.Output = t.tokens - turn.Prompt
	t.turns = append(t.turns, turn)
}

func role(message json.RawMessage) string {
	var m struct {
		Role string `json:"role"`
	}
	_ = json.Unmarshal(message, &m) // trace has checked it
	return m.Role
}

// gapMax bounds what a recorded pause can be: people went to lunch.
const gapMax = 30 * time.Second

func gap(s source, recorded time.Duration, think float64, turn int) time.Duration {
	switch {
	case turn == 0:
		return 0
	case think == 0 && recorded > 0:
		return min(recorded, gapMax)
	case think == 0:
		think = 3
	}
	return seconds(think * s.ExpFloat64())
}

func textSegment(id uint64, bytes int) Segment {
	g := segment(id, 1000)
	return Segment{ID: id, Tokens: max(int(math.Round(float64(bytes)*1000/float64(g.Bytes))), 1), Bytes: bytes}
}

// identity is a hash of text, the same in every process.
func identity(raw []byte) uint64 {
	h := uint64(len(raw))
	for len(raw) >= 8 {
		h = mix(h, uint64(raw[0])|uint64(raw[1])<<8|uint64(raw[2])<<16|uint64(raw[3])<<24|
			uint64(raw[4])<<32|uint64(raw[5])<<40|uint64(raw[6])<<48|uint64(raw[7])<<56)
		raw = raw[8:]
	}
	for _, b := range raw {
		h = mix(h, uint64(b))
	}
	return h
}
