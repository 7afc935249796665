package workload

import (
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

// Files opens workloads as Open does, and reads a file of conversations once,
// however often it is asked for. It may be used by several goroutines at once;
// files must not change meanwhile. The zero value is ready.
type Files struct {
	mu      sync.Mutex
	scripts map[string]*script
}

// script is what a file of conversations tells to those who play them. It keeps
// no text, only what it is told apart by.
type script struct {
	dialogues [][]scene
	requests  int
}

// scene is a turn of a conversation.
type scene struct {
	begins   bool // a new context, with the tools first
	tools    []piece
	messages []message
	answer   []piece
	recorded bool // answer is
	gap      time.Duration
}

type message struct {
	user bool
	text []piece
}

// piece is a stretch of text. Equal texts behind equal beginnings are the same.
type piece struct {
	chained uint64
	bytes   int32
	shared  bool // other conversations of the file begin with it too
}

// pieceBytes is the length of the pieces that text is compared by.
const pieceBytes = 256

func (f *Files) script(path string) (*script, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.scripts[path]; known != nil {
		return known, nil
	}
	t, err := trace.ReadFile(path, trace.Options{})
	if err != nil {
		return nil, err
	}
	s := newScript(t)
	if f.scripts == nil {
		f.scripts = make(map[string]*script)
	}
	f.scripts[path] = s
	return s, nil
}

func newScript(t *trace.Trace) *script {
	s := &script{requests: t.Requests()}
	for i := range t.Conversations {
		s.dialogues = append(s.dialogues, scenes(&t.Conversations[i]))
	}
	s.share()
	return s
}

func scenes(c *trace.Conversation) []scene {
	var all []scene
	var chained uint64
	cut := func(raw []byte) []piece {
		pieces := make([]piece, 0, (len(raw)+pieceBytes-1)/pieceBytes)
		for len(raw) > 0 {
			n := min(pieceBytes, len(raw))
			chained = mix(chained, identity(raw[:n]))
			pieces = append(pieces, piece{chained: chained, bytes: int32(n)})
			raw = raw[n:]
		}
		return pieces
	}
	for i := range c.Turns {
		turn := &c.Turns[i]
		n := scene{begins: i == 0 || turn.Whole, recorded: turn.Assistant != nil, gap: turn.Gap}
		if n.begins {
			chained = 0
			n.tools = cut(c.Tools)
		}
		for _, m := range turn.Messages {
			n.messages = append(n.messages, message{role(m) == "user", cut(m)})
		}
		n.answer = cut(turn.Assistant)
		all = append(all, n)
	}
	return all
}

// share marks the pieces that at least two conversations have.
func (s *script) share() {
	const several = -1
	owner := make(map[uint64]int)
	s.each(func(dialogue int, p *piece) {
		if first, ok := owner[p.chained]; ok && first != dialogue {
			owner[p.chained] = several
		} else if !ok {
			owner[p.chained] = dialogue
		}
	})
	s.each(func(_ int, p *piece) { p.shared = owner[p.chained] == several })
}

func (s *script) each(do func(dialogue int, p *piece)) {
	all := func(i int, text []piece) {
		for j := range text {
			do(i, &text[j])
		}
	}
	for i, scenes := range s.dialogues {
		for j := range scenes {
			all(i, scenes[j].tools)
			for _, m := range scenes[j].messages {
				all(i, m.text)
			}
			all(i, scenes[j].answer)
		}
	}
}
