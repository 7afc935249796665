package workload

import (
	"encoding/json"
	"math"
	"time"
)

// textParams are those of a file of conversations, behind a colon.
var textParams = []Param{
	{"think", 0, "mean seconds between answer and next message; 0 takes the file's times, 3 where it has none"},
}

// readText makes sessions of a file of conversations. Each is played by several
// clients, who share what several conversations of the file begin with, and
// nothing else.
func (f *Files) readText(path, rest string, o Options) (*Workload, error) {
	p, err := parse(textParams, rest)
	if err != nil {
		return nil, err
	}
	play, err := f.script(path)
	if err != nil {
		return nil, err
	}
	s := newSource(o.Seed)
	w := &Workload{Closed: true}
	at, mean := 0.0, float64(play.requests)/float64(len(play.dialogues))
	for made := 0; made < o.Requests; {
		for _, i := range s.Perm(len(play.dialogues)) {
			at += s.ExpFloat64() * mean
			player := player{salt: s.fresh()}
			turns := player.play(s, play.dialogues[i], p["think"])
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

// player makes contents of one conversation.
type player struct {
	salt   uint64
	thread *thread
}

func (p *player) put(text []piece) {
	for _, t := range text {
		id := t.chained
		if !t.shared {
			id = mix(id, p.salt)
		}
		p.thread.add(textSegment(id, int(t.bytes)))
	}
}

func (p *player) play(s source, scenes []scene, think float64) []Turn {
	var turns []Turn
	for i := range scenes {
		c := &scenes[i]
		if c.begins {
			if p.thread != nil {
				turns = append(turns, p.thread.turns...)
			}
			p.thread = newThread()
			p.put(c.tools)
		}
		for _, m := range c.messages {
			if m.user && len(p.thread.turns) == 0 {
				p.thread.content.user = len(p.thread.content.segments)
			}
			p.put(m.text)
		}
		p.answer(s, c, Turn{Gap: gap(s, c.gap, think, i)})
	}
	return append(turns, p.thread.turns...)
}

// unrecordedAnswer is the length of answers that a file doesn't have, bytes.
const unrecordedAnswer = 800

// answer ends the turn's prompt and adds its answer.
func (p *player) answer(s source, c *scene, turn Turn) {
	t := p.thread
	turn.Content, turn.Prompt, turn.Bytes = t.content, t.tokens, t.bytes
	if c.recorded {
		p.put(c.answer)
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
