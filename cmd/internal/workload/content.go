package workload

import "math"

// Segment is a stretch of text that is always the same for the same ID.
type Segment struct {
	ID     uint64
	Tokens int
	Bytes  int
}

// Content is what a session's prompts and answers consist of, in order. Every
// prompt is a beginning of it that ends where a segment does.
type Content struct {
	segments []Segment
	user     int // segment with which the first user message begins
	chains   []chain
}

type chain struct {
	unit   int
	bytes  bool
	hashes []uint64

	numbers []int32 // of the hashes; nil as long as nobody wants them
}

// Tokens returns the hashes of the full blocks of unit tokens, each chained on
// those before it. The hashes of a prompt are the first Prompt/unit of them.
func (c *Content) Tokens(unit int) []uint64 { return c.chain(unit, false).hashes }

// Bytes is Tokens in blocks of unit bytes.
func (c *Content) Bytes(unit int) []uint64 { return c.chain(unit, true).hashes }

func (c *Content) chain(unit int, bytes bool) *chain {
	for i := range c.chains {
		if c.chains[i].unit == unit && c.chains[i].bytes == bytes {
			return &c.chains[i]
		}
	}
	c.chains = append(c.chains, chain{unit: unit, bytes: bytes, hashes: hash(c.segments, unit, bytes)})
	return &c.chains[len(c.chains)-1]
}

// UserKey identifies the first n bytes of the first user message.
func (c *Content) UserKey(n int) uint64 {
	h := hash(clip(c.segments[c.user:], n), n, true)
	if len(h) == 0 {
		return mix(uint64(len(c.segments)), c.segments[c.user].ID)
	}
	return h[0]
}

// clip returns the leading segments that hold n bytes.
func clip(s []Segment, n int) []Segment {
	sum := 0
	for i := range s {
		if sum += s[i].Bytes; sum >= n {
			return s[:i+1]
		}
	}
	return s
}

func hash(segments []Segment, unit int, bytes bool) []uint64 {
	total := 0
	for i := range segments {
		total += segments[i].length(bytes)
	}
	hashes := make([]uint64, 0, total/unit)
	h, fill := uint64(0), 0
	for i := range segments {
		s := &segments[i]
		length := s.length(bytes)
		for off := 0; off < length; {
			take := min(unit-fill, length-off)
			h = mix(h, s.ID)
			h = mix(h, uint64(off)<<32|uint64(take))
			off += take
			if fill += take; fill == unit {
				hashes = append(hashes, h)
				fill = 0
			}
		}
	}
	return hashes
}

func (s *Segment) length(bytes bool) int {
	if bytes {
		return s.Bytes
	}
	return s.Tokens
}

// mix chains x onto h; the constants are those of SplitMix64 (Steele, Lea,
// Flood 2014).
func mix(h, x uint64) uint64 {
	z := (h ^ (x + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>29) * 0x94d049bb133111eb
	return z ^ z>>32
}

// bytesPerToken is the mean over English text and code with current
// vocabularies of 128,000 tokens; a segment is up to a fifth off it.
const bytesPerToken = 4.2

// segment makes one of a generated text, whose bytes per token depend on what
// it is: proxies estimate tokens from bytes and are a little wrong.
func segment(id uint64, tokens int) Segment {
	off := float64(mix(id, 7)>>11)/(1<<53)*0.4 - 0.2
	return Segment{ID: id, Tokens: tokens, Bytes: int(math.Round(float64(tokens) * bytesPerToken * (1 + off)))}
}

// thread builds a session's content turn by turn.
type thread struct {
	content *Content
	turns   []Turn
	tokens  int
	bytes   int
}

// newThread begins with what stands in front of the first user message.
func newThread(prefix ...Segment) *thread {
	t := &thread{content: &Content{user: len(prefix)}}
	for _, s := range prefix {
		t.add(s)
	}
	return t
}

func (t *thread) add(s Segment) {
	if s.Tokens <= 0 {
		return
	}
	t.content.segments = append(t.content.segments, s)
	t.tokens += s.Tokens
	t.bytes += s.Bytes
}

// ask ends the prompt of a turn, whose answer follows.
func (t *thread) ask(turn Turn, answer Segment) {
	turn.Content, turn.Prompt, turn.Bytes, turn.Output = t.content, t.tokens, t.bytes, answer.Tokens
	t.turns = append(t.turns, turn)
	t.add(answer)
}
