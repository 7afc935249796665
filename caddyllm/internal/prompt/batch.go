package prompt

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// idMax bounds the token ids that are fed as 4 bytes. It keeps their first
// byte below that of a mark; no vocabulary comes near it.
const idMax = mark<<24 - 1

func (s *Scanner) feedPrompt(kind Kind) {
	if kind == Invocations {
		kind = s.shape()
	}
	s.kind = kind
	switch kind {
	case Chat, Messages:
		s.feedChat()
	case Responses:
		s.feedChat()
		s.feedInput()
	case Completions:
		s.feedOptions()
		s.batch(fPrefix)
		s.batch(fPrompt)
		s.embeds(s.fields[fEmbeds])
	case Rerank, Score:
		if s.first(s.fields[fQuery]) != 0 {
			s.mark(lQuery)
			s.batch(fQuery)
			s.batch(fDocuments)
			s.batch(fPrompt) // texts, as TEI names the documents
		}
	case Root:
		// Anything may be sent there: a prompt is what has the name that TGI knows.
		s.fields[fPrompt] = s.inputs()
		s.feedOptions()
		s.batch(fPrompt)
	case Embeddings, Classify, Tokenize, Generate:
		if v := s.fields[fMessages]; s.first(v) == '[' && !s.hollow(v) {
			s.feedChat()
			return
		}
		s.feedOptions()
		if v := s.fields[fSystem]; s.first(v) == '"' && s.says(v) { // Ollama's
			s.roleOnly("system")
			s.content(v, 0)
		}
		s.images(s.fields[fImages])
		s.attachments(lAudio, s.fields[fAudios])
		s.attachments(lVideo, s.fields[fVideos])
		if v := s.fields[fContext]; s.first(v) == '[' && !s.hollow(v) {
			s.ids(v)
		}
		pictured := s.found
		s.found = false
		for _, f := range [...]field{fPrompt, fInput, fContent, fInputIDs} {
			if !s.found && s.tells(s.fields[f]) {
				s.batch(f)
			}
		}
		s.found = s.found || pictured
	}
}

// inputs is the request's member of that name.
func (s *Scanner) inputs() (found span) {
	for w := s.enter(s.root); w.next(); {
		if string(w.name()) == "inputs" {
			found = w.value
		}
	}
	return found
}

// shape tells the kind of a body whose path doesn't.
func (s *Scanner) shape() Kind {
	for _, x := range [...]struct {
		field field
		kind  Kind
	}{{fMessages, Chat}, {fPrompt, Completions}, {fEmbeds, Completions}, {fInput, Embeddings}, {fQuery, Score}} {
		if s.tells(s.fields[x.field]) {
			return x.kind
		}
	}
	return None
}

// batch feeds a field that holds a text, token ids, or a list of either. The
// first prompt of a list is chained: prompts of a batch are independent, and
// joined they would look like one that no engine ever had. Of the others only
// the length counts.
func (s *Scanner) batch(f field) {
	v := s.fields[f]
	if s.first(v) != '[' {
		s.single(v)
		return
	}
	n := 0
	if c := s.at(s.space(int(v.from) + 1)); c == '-' || c >= '0' && c <= '9' {
		s.ids(v)
		return
	}
	for w := s.enter(v); w.next(); n++ {
		if n == 1 {
			s.begin(toCount)
		}
		s.single(w.value)
	}
	s.begin(toChain)
	s.prompts = max(s.prompts, n)
}

// single feeds one prompt.
func (s *Scanner) single(v span) {
	switch s.first(v) {
	case '"':
		s.mark(lPrompt)
		s.text(v)
		s.found = s.found || len(s.inside(v)) > 0
	case '[':
		s.ids(v)
	case '{':
		s.document(v)
	}
}

// document feeds a prompt that is an object: that of a chat's content, or a
// picture, or something that is printed.
func (s *Scanner) document(v span) {
	var f [nPartFields]span
	note(&s.lexer, v, partFieldOf, f[:])
	switch c := s.first(f[pContent]); {
	case (c == '[' || c == '"') && s.tells(f[pContent]):
		s.mark(lPrompt)
		s.content(f[pContent], 0)
	case !s.says(f[pText]) && s.media(&f):
	default:
		s.reading(lPrompt, v)
	}
}

// ids feeds token ids, 4 bytes each. What isn't an id takes a mark, so that it
// can't be taken for one; the engine will refuse it.
func (s *Scanner) ids(v span) {
	s.mark(lIDs)
	to, m := int(v.to), v.mark
	if s.marked(int(v.from), m) {
		m++
	}
	for i := s.space(int(v.from) + 1); i < to && !s.broken; i = s.space(i) {
		switch s.body[i] {
		case ']', ',':
			i++
			continue
		}
		id, end := s.id(i)
		if end == to && v.cut() {
			return // the number may go on
		}
		s.found = true
		if end > i && s.endsScalar(end) {
			s.room(4)
			binary.BigEndian.PutUint32(s.buf[s.n:], uint32(id))
			s.n += 4
			i = end
			continue
		}
		var t span
		t, m = s.valueAt(i, m)
		s.mark(lUnknown)
		s.number(xxhash.Sum64(s.bytes(t)))
		i = int(t.to)
	}
}

// id reads digits up to idMax.
func (s *Scanner) id(i int) (id uint64, end int) {
	for ; i < len(s.body); i++ {
		c := s.body[i] - '0'
		if c > 9 || id*10+uint64(c) > idMax {
			break
		}
		id = id*10 + uint64(c)
	}
	return id, i
}

func (s *Scanner) endsScalar(i int) bool {
	switch s.at(i) {
	case ',', ']', ' ', '\n', '\t', '\r':
		return true
	}
	return false
}

// embeds feeds what comes as tensors, which stand for text that is nowhere to
// be read.
func (s *Scanner) embeds(v span) {
	if !s.present(v) || v.cut() {
		return
	}
	s.found = true
	s.extraTokens += int(v.to-v.from) / embedBytes
	sum := s.digested(v)
	s.mark(lEmbeds)
	s.number(sum)
}

// embedBytes is what one token of a prompt of tensors takes: 4,096 numbers of
// 16 bits, in base64.
const embedBytes = 4096 * 2 * 4 / 3

// images feeds what SGLang, Cohere and Ollama take beside the text.
func (s *Scanner) images(v span) { s.attachments(lImage, v) }

func (s *Scanner) attachments(letter byte, v span) {
	if s.first(v) != '[' {
		s.attachment(letter, v)
		return
	}
	for w := s.enter(v); w.next(); {
		s.attachment(letter, w.value)
	}
}

func (s *Scanner) attachment(letter byte, v span) {
	if s.present(v) {
		s.attach(letter, v, s.shown)
	}
}
