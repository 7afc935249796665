package vllmapi

import "unicode/utf8"

type partKind uint8

const (
	content partKind = iota
	thought
	toolCall
)

// part is a stretch of a reply's tokens that a client sees as one thing.
// Tokens that belong to none, as the end of turn, have no text.
type part struct {
	kind        partKind
	from, to    int // tokens, with specials
	lead, trail int // of them, before the text and behind it
	bytes       int // of text, up to a stop string

	seed     uint64 // of words
	words    int
	complete bool // the last word ends in a full stop

	// Text that is said instead of words; a call's are its arguments.
	fixed  string
	call   call
	tokens []token // of a call
}

// token is the i-th token of the part.
func (p *part) token(i int) token {
	if p.kind == toolCall {
		return p.tokens[i]
	}
	if p.fixed != "" {
		return textToken(p.fixed[textBytes*i : min(textBytes*(i+1), len(p.fixed))])
	}
	switch i -= p.lead; {
	case i < 0:
		return tokenThink
	case i >= p.words:
		return tokenThinkEnd
	}
	var word [textBytes]byte
	return textToken(string(appendWord(word[:0], p.seed, i, p.complete && i == p.words-1)))
}

// appendWord adds the text of the i-th token, three letters and a space. A
// reply's last word ends in a full stop instead, so that a client that trims
// white space sends back what was generated.
func appendWord(b []byte, seed uint64, i int, last bool) []byte {
	const consonants, vowels = "bcdfghjklmnprstvwz", "aeiou"
	r := mix(seed ^ mix(uint64(i)+1))
	end := byte(' ')
	if last {
		end = '.'
	}
	return append(b, consonants[r%18], vowels[(r>>16)%5], consonants[(r>>32)%18], end)
}

// shown is how many bytes of the part's text are out when n tokens of the
// reply are, but for hold bytes that may belong to a stop string.
func (p *part) shown(n, hold int) int {
	if n >= p.to {
		return p.bytes
	}
	bytes := min(textBytes*(n-p.from-p.lead), p.bytes) - hold
	if bytes <= 0 {
		return 0
	}
	// Half a character is none.
	for bytes > 0 && bytes < len(p.fixed) && !utf8.RuneStart(p.fixed[bytes]) {
		bytes--
	}
	return bytes
}

// appendText adds the bytes from to to of the part's text.
func (p *part) appendText(b []byte, from, to int) []byte {
	if from >= to {
		return b
	}
	if p.fixed != "" {
		return append(b, p.fixed[from:to]...)
	}
	start, first := len(b), from/textBytes
	for i := first; textBytes*i < to; i++ {
		b = appendWord(b, p.seed, i, p.complete && i == p.words-1)
	}
	if skip := from - textBytes*first; skip > 0 {
		copy(b[start:], b[start+skip:])
		b = b[:len(b)-skip]
	}
	return b[:start+to-from]
}

// text is all of the part's text.
func (p *part) text() string {
	if p.fixed != "" {
		return p.fixed[:p.bytes]
	}
	return string(p.appendText(make([]byte, 0, p.bytes+textBytes), 0, p.bytes))
}

// named says whether the name of a call is out, in a reply that is complete.
func (p *part) named() bool { return p.kind == toolCall && p.to-p.from >= p.lead }

// torn says whether a call, in a reply that is complete, was cut short.
func (p *part) torn() bool { return p.to-p.from < len(p.tokens) }

// textTokens is how many tokens n bytes of text are.
func textTokens(n int) int { return (n + textBytes - 1) / textBytes }
