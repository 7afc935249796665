package prompt

import "bytes"

// What one attachment adds to a prompt, tokens. The true number depends on the
// model and on the picture's size, which only decoding it would tell; these
// are the middle of what open models take, and only weigh a request.
const (
	// Gemma 3 takes 256 for each image, LLaVA 1.5 takes 24×24 = 576, Qwen2-VL
	// one for each 28×28 pixels: 1,369 for an image of 1036×1036.
	imageTokens = 600
	// Qwen2-Audio takes 25 each second of its window of 30 s.
	audioTokens = 750
	// vLLM takes 32 frames of a video unless told otherwise; LLaVA-NeXT-Video
	// has 12×12 tokens for each.
	videoTokens = 32 * 144
	// Files are rendered to text or to images by the engine.
	fileTokens = imageTokens
)

// media feeds a part that holds an image, audio, a video or a file as a hash
// of its bytes or its address. It reports false for other parts.
func (s *Scanner) media(f *[nPartFields]span) bool {
	for _, m := range [...]struct {
		field  partField
		letter byte
		tokens int
	}{
		{pImage, 'i', imageTokens},
		{pAudio, 'a', audioTokens},
		{pVideo, 'v', videoTokens},
		{pFile, 'F', fileTokens},
	} {
		v := f[m.field]
		if !s.present(v) {
			continue
		}
		s.extraTokens += m.tokens
		s.found = true
		if !v.cut { // the hash of half of it would start nothing
			sum := s.attachment(v)
			s.mark(m.letter)
			s.number(sum)
		}
		return true
	}
	return false
}

func (s *Scanner) attachment(v span) uint64 {
	before := s.begin(toDigest)
	s.value(s.payload(v))
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
	for w := s.enter(v.from); w.next(); {
		switch string(w.name()) {
		case "url", "data", "file_data", "file_id", "file_url":
			if s.first(w.value) == '"' {
				found = w.value
			}
		}
	}
	return found
}

// billing starts a line that a widespread coding client puts before its system
// prompt, with a value that is new in every request. Engines that know it drop
// it; for others the prompt is new each time, and where it goes is no matter.
var billing = []byte("x-anthropic-billing-header:")

// billingMax bounds that line, bytes.
const billingMax = 512

// withoutBilling drops a leading billing line from a string's raw text: up to
// the line feed, or else to the end of its last known value, or else all of it.
func withoutBilling(raw []byte) []byte {
	if !bytes.HasPrefix(raw, billing) {
		return raw
	}
	head := raw[:min(len(raw), billingMax)]
	if i := bytes.Index(head, []byte(`\n`)); i >= 0 {
		return raw[i+2:]
	}
	if i := bytes.Index(head, []byte("cch=")); i >= 0 {
		if j := bytes.IndexByte(head[i:], ';'); j >= 0 {
			return raw[i+j+1:]
		}
	}
	if len(raw) <= billingMax {
		return nil
	}
	return raw
}
