package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Bounds of what a file can make a replay hold and compute.
const (
	maxPrompt  = 1 << 24 // tokens
	maxOutput  = 1 << 20 // tokens
	maxSpan    = 366 * 24 * time.Hour
	maxLine    = 16 << 20 // bytes
	maxRecords = 1 << 22
)

// Formats lists names and descriptions of the formats without text.
func Formats() [][2]string {
	return [][2]string{
		{"mooncake", `Mooncake traces: {"timestamp" ms, "input_length", "output_length", "hash_ids"} a line; an id for each 512 tokens; ` +
			"requests that share more than a beginning of everyone's go through one proxy"},
		{"azure", "Azure LLM traces: CSV of TIMESTAMP,ContextTokens,GeneratedTokens; prompts share nothing"},
		{"plain", `ours: {"at_s", "prompt": [{"id", "tokens", "bytes"?}], "output_tokens", "answer"?: id, "session"?} a line; ` +
			"prompts that begin with the same ids begin with the same text, an answer may be part of a later prompt, " +
			"and requests of a session go through one proxy"},
	}
}

// readFile reads a trace, told by its first line.
func (f *Files) readFile(path, rest string, o Options) (*Workload, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening trace: %w", err)
	}
	defer file.Close()
	w, err := f.read(file, path, rest, o)
	if err != nil {
		return nil, fmt.Errorf("reading trace %s: %w", path, err)
	}
	return w, nil
}

func (f *Files) read(r io.Reader, path, rest string, o Options) (*Workload, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	if magic, err := b.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
		b = bufio.NewReaderSize(z, 1<<16)
	}
	head, err := b.Peek(1 << 12)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	switch {
	case bytes.HasPrefix(head, []byte("TIMESTAMP,")):
		return readAzure(b, o)
	case hasField(head, "hash_ids"):
		return readLines(b, newMooncake(o))
	case hasField(head, "prompt") && hasField(head, "output_tokens"):
		return readLines(b, newPlain(o))
	}
	return f.readText(path, rest, o)
}

// hasField reports whether the first line names a field.
func hasField(head []byte, name string) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return bytes.Contains(line, []byte(`"`+name+`"`))
}

// lines takes the records of a file, one after the other.
type lines interface {
	line(raw []byte) (enough bool, err error)
	done() *Workload
}

func readLines(r io.Reader, l lines) (*Workload, error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxLine)
	for n := 1; scanner.Scan() && n <= maxRecords; n++ {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		enough, err := l.line(scanner.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if enough {
			return l.done(), nil
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	return l.done(), nil
}

// mooncake reads Mooncake's traces: equal hash ids are equal blocks of 512
// tokens behind equal prefixes.
type mooncake struct {
	w       *Workload
	most    int
	blocks  [][]uint64     // of each request, without the first
	carried map[uint64]int // requests that carry a block, without first ones
}

const mooncakeBlock = 512

func newMooncake(o Options) *mooncake {
	return &mooncake{w: &Workload{}, most: o.Requests, carried: make(map[uint64]int)}
}

func (m *mooncake) line(raw []byte) (bool, error) {
	var r struct {
		Timestamp float64  `json:"timestamp"` // ms
		Input     int      `json:"input_length"`
		Output    int      `json:"output_length"`
		IDs       []uint64 `json:"hash_ids"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return false, errors.New("no record of a Mooncake trace")
	}
	at, err := timeOf(r.Timestamp / 1000)
	if err != nil {
		return false, err
	}
	if r.Input < 1 || r.Input > maxPrompt || r.Output < 0 || r.Output > maxOutput || len(r.IDs) > r.Input/mooncakeBlock+1 {
		return false, errors.New("lengths and hash ids don't fit")
	}
	t := newThread()
	for _, id := range r.IDs {
		t.add(segment(mix(3, id), min(mooncakeBlock, r.Input-t.tokens)))
	}
	unknown := uint64(len(m.w.Sessions)) << 1
	t.add(segment(mix(4, unknown), r.Input-t.tokens))
	// The traces have no roles. Nearly all prompts share their first block, so
	// the user's words are taken to begin behind it.
	t.content.user = min(1, len(t.content.segments)-1)
	t.ask(Turn{}, segment(mix(4, unknown+1), max(r.Output, 1)))
	m.w.Sessions = append(m.w.Sessions, Session{Start: at, Turns: t.turns})
	blocks := r.IDs[min(1, len(r.IDs)):]
	for _, id := range blocks {
		m.carried[id]++
	}
	m.blocks = append(m.blocks, blocks)
	return len(m.w.Sessions) >= m.most, nil
}

// A beginning that more requests than this share, and more than this share of all,
// is what an application gives to everyone, no conversation.
const (
	mostOfConversation  = 32
	shareOfConversation = 0.05
)

// done says which requests are of one conversation, as the traces don't. Nearly all
// prompts share their first block; who shares the first block behind it that is not
// everyone's goes on with what another asked. In the conversation trace that is the
// second one everywhere: among the first 3,000 requests there are 2,034 of them, and
// the one that most share has 19 requests.
func (m *mooncake) done() *Workload {
	everyones := max(mostOfConversation, int(shareOfConversation*float64(len(m.blocks))))
	conversations := make(map[uint64]int)
	for i, blocks := range m.blocks {
		for _, id := range blocks {
			if m.carried[id] > everyones {
				continue
			}
			if conversations[id] == 0 {
				conversations[id] = len(conversations) + 1
			}
			m.w.Sessions[i].Conversation = conversations[id]
			break
		}
	}
	return m.w
}

// plain reads our own form, documented in traces: one request a line.
type plain struct {
	w        *Workload
	most     int
	made     int
	sessions map[string]int
	lastAt   map[string]time.Duration
	ids      map[string]uint64
}

func newPlain(o Options) *plain {
	return &plain{w: &Workload{}, most: o.Requests, sessions: make(map[string]int), lastAt: make(map[string]time.Duration), ids: make(map[string]uint64)}
}

func (l *plain) id(name string) uint64 {
	id, ok := l.ids[name]
	if !ok {
		id = mix(5, uint64(len(l.ids)))
		l.ids[name] = id
	}
	return id
}

func (l *plain) line(raw []byte) (bool, error) {
	var r struct {
		At      float64 `json:"at_s"`
		Session string  `json:"session"`
		Prompt  []struct {
			ID     string `json:"id"`
			Tokens int    `json:"tokens"`
			Bytes  int    `json:"bytes"`
		} `json:"prompt"`
		Output int    `json:"output_tokens"`
		Answer string `json:"answer"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return false, errors.New("no record of a plain trace")
	}
	at, err := timeOf(r.At)
	if err != nil {
		return false, err
	}
	t := newThread()
	for _, part := range r.Prompt {
		if part.Tokens < 1 || part.Tokens > maxPrompt || part.Bytes < 0 || part.Bytes > 64*part.Tokens {
			return false, errors.New("a part of a prompt has impossible lengths")
		}
		s := segment(l.id(part.ID), part.Tokens)
		if part.Bytes > 0 {
			s.Bytes = part.Bytes
		}
		t.add(s)
	}
	if t.tokens < 1 || t.tokens > maxPrompt || r.Output < 1 || r.Output > maxOutput {
		return false, errors.New("a request needs a prompt and output_tokens")
	}
	answer := segment(mix(6, uint64(l.made)), r.Output)
	if r.Answer != "" {
		answer = segment(l.id(r.Answer), r.Output)
	}
	t.ask(Turn{}, answer)
	l.add(at, r.Session, t.turns[0])
	l.made++
	return l.made >= l.most, nil
}

// add puts a turn behind those of its session.
func (l *plain) add(at time.Duration, session string, turn Turn) {
	if i, ok := l.sessions[session]; ok && session != "" {
		turn.Gap = max(at-l.lastAt[session], 0)
		l.lastAt[session] = at
		l.w.Sessions[i].Turns = append(l.w.Sessions[i].Turns, turn)
		return
	}
	l.sessions[session], l.lastAt[session] = len(l.w.Sessions), at
	l.w.Sessions = append(l.w.Sessions, Session{Start: at, Turns: []Turn{turn}})
}

func (l *plain) done() *Workload { return l.w }

func timeOf(s float64) (time.Duration, error) {
	if !(s >= 0 && s <= maxSpan.Seconds()) {
		return 0, errors.New("a time is negative or longer than a year")
	}
	return seconds(s), nil
}

// readAzure reads arrivals and lengths of Azure's public traces. They say
// nothing of prefixes: no prompt shares anything.
func readAzure(r io.Reader, o Options) (*Workload, error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	if _, err := c.Read(); err != nil {
		return nil, err
	}
	w := &Workload{}
	s := newSource(o.Seed)
	var first time.Time
	for len(w.Sessions) < o.Requests {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := c.FieldPos(0)
		var prompt, output int
		at, err := time.Parse("2006-01-02 15:04:05.9999999", row[0])
		if err == nil && len(row) >= 3 {
			_, err = fmt.Sscan(row[1]+" "+row[2], &prompt, &output)
		}
		if err != nil || prompt < 1 || prompt > maxPrompt || output < 0 || output > maxOutput {
			return nil, fmt.Errorf("line %d: no record of an Azure trace", line)
		}
		if first.IsZero() {
			first = at
		}
		t := newThread()
		t.add(segment(s.fresh(), prompt))
		t.ask(Turn{}, segment(s.fresh(), max(output, 1)))
		w.Sessions = append(w.Sessions, Session{Start: max(at.Sub(first), 0), Turns: t.turns})
	}
	return w, nil
}
