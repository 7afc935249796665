package prompt

import "bytes"

// Letters of attachments.
const (
	lImage = 'i'
	lAudio = 'a'
	lVideo = 'v'
	lFile  = 'F'
)

// media feeds a part that holds an image, audio, a video or a file as a hash
// of its bytes or its address. It reports false for other parts.
func (s *Scanner) media(f *[nPartFields]span) bool {
	for _, m := range [...]struct {
		field  partField
		letter byte
	}{{pImage, lImage}, {pAudio, lAudio}, {pVideo, lVideo}, {pFile, lFile}} {
		v := f[m.field]
		if !s.shows(v) {
			continue
		}
		if s.identified(f) {
			s.attach(m.letter, f[pUUID], s.digested)
		} else {
			s.attach(m.letter, v, s.shown)
		}
		return true
	}
	return s.named(f)
}

// shows reports whether v has anything of an attachment: of an object, an address
// or data, or something else that isn't a mere setting.
func (s *Scanner) shows(v span) bool {
	if s.first(v) != '{' || v.cut() {
		return s.tells(v)
	}
	known := false
	for w := s.enter(v); w.next(); {
		switch c := s.first(w.value); {
		case isPayload(w.name()):
			if s.tells(w.value) {
				return true
			}
			known = true
		case c == '{' || c == '[':
			if !s.hollow(w.value) {
				return true
			}
		}
	}
	return !known && !s.hollow(v)
}

// isPayload reports whether a member of that name is what identifies an attachment.
func isPayload(name []byte) bool {
	switch string(name) {
	case "url", "data", "file_data", "file_id", "file_url":
		return true
	}
	return false
}

// named feeds what vLLM has seen before, of which only the name is sent again.
func (s *Scanner) named(f *[nPartFields]span) bool {
	if !s.identified(f) {
		return false
	}
	for _, m := range [...]struct {
		kind   string
		letter byte
	}{{"image_url", lImage}, {"audio_url", lAudio}, {"input_audio", lAudio}, {"video_url", lVideo}} {
		if string(s.headOf(f[pType])) == m.kind {
			s.attach(m.letter, f[pUUID], s.digested)
			return true
		}
	}
	return false
}

// screenshot feeds what a computer's use came to.
func (s *Scanner) screenshot(v span) bool {
	if s.first(v) != '{' {
		return false
	}
	var f [nPartFields]span
	note(&s.lexer, v, partFieldOf, f[:])
	return string(s.headOf(f[pType])) == "computer_screenshot" && s.media(&f)
}

// identified reports whether a part has the name by which vLLM tells its pictures
// apart, and not by what they show.
func (s *Scanner) identified(f *[nPartFields]span) bool {
	id := f[pUUID]
	return s.first(id) == '"' && len(s.inside(id)) > 0 && !id.cut()
}

// attach feeds an attachment by a hash of it.
func (s *Scanner) attach(letter byte, v span, hash func(span) uint64) {
	data := s.payload(v)
	s.extraTokens += mediaTokens(letter, s.headOf(data), int(data.to-data.from)-2)
	s.found = true
	if v.cut() {
		return // the hash of half of it would start nothing
	}
	sum := hash(data)
	s.mark(letter)
	s.number(sum)
}

// headOf is the start of a string's text, to see what it holds.
func (s *Scanner) headOf(v span) []byte {
	if s.first(v) != '"' {
		return nil
	}
	raw := s.inside(v)
	raw = raw[:min(len(raw), mediaHead)]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	out := s.head[:0]
	for len(raw) > 0 {
		n := 1
		if raw[0] != '\\' {
			out = append(out, raw[0])
		} else if out, n = appendEscape(out, raw); n == 0 {
			break
		}
		raw = raw[n:]
	}
	s.head = out
	return out
}

// shown is the hash of what the engine tells attachments apart by.
func (s *Scanner) shown(v span) uint64 {
	before := s.begin(toDigest)
	if !s.unsigned(v) {
		s.value(v)
	}
	sum := s.sum()
	s.begin(before)
	return sum
}

// digested is the hash of any value.
func (s *Scanner) digested(v span) uint64 {
	before := s.begin(toDigest)
	s.value(v)
	sum := s.sum()
	s.begin(before)
	return sum
}

// payload is what identifies an attachment: its data or address where one is
// given under a known name, else the whole value.
func (s *Scanner) payload(v span) span {
	if s.first(v) != '{' {
		return v
	}
	found := v
	for w := s.enter(v); w.next(); {
		if isPayload(w.name()) && s.first(w.value) == '"' && s.says(w.value) {
			found = w.value
		}
	}
	return found
}
