package vllmapi

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a reply that ends by itself, in tokens with the end-of-turn token:
// its length is drawn from the seed, each one as likely as the others. Thoughts
// and calls of tools come on top.
const (
	naturalMin = 16
	naturalMax = 256
)

// reply is all that a sequence will generate. It is known when the request
// comes, since it follows from the seed; the engine only decides when.
type reply struct {
	tokens []token
	parts  []part
	finish string // "stop" or "length"
	reason any    // stop string or stop token id that ended it, or nil
	hold   int    // bytes of text that may be the beginning of a stop string
}

type partKind uint8

const (
	content partKind = iota
	thought
	toolCall
)

// part is a stretch of a reply's tokens that a client sees as one thing.
// Tokens that belong to none, as the end of turn, have no text.
type part struct {
	kind     partKind
	from, to int    // tokens, with specials
	lead     int    // of them, before the text
	text     string // of a call, its arguments; ends before a stop string
	call     call
}

// limits say where a reply ends.
type limits struct {
	maxTokens, minTokens int
	ignoreEOS            bool
	stop                 []string
	stopTokens           []token
	keepStop             bool // the stop string stays in the text
}

// script is what a reply says besides words.
type script struct {
	thought int    // tokens of it; 0 is none
	silent  bool   // no words: the calls are all
	calls   []call // after the words
}

// plan makes the reply of one sequence.
func plan(seed uint64, l limits, s script) reply {
	r := reply{finish: "length"}
	if !l.keepStop {
		for _, stop := range l.stop {
			r.hold = max(r.hold, len(stop)-1)
		}
	}
	if s.thought > 0 {
		r.think(mix(seed^0x7468696e6b), s.thought)
	}
	words := 0
	if !s.silent {
		words = naturalMin - 1 + int(mix(seed)%(naturalMax-naturalMin+1))
	}
	// The end of turn is barred until minTokens are out.
	ends := !l.ignoreEOS || len(s.calls) > 0
	missing := l.minTokens - len(r.tokens) - words
	if !ends {
		missing = l.maxTokens - len(r.tokens) - words
	}
	if missing > 0 && len(s.calls) == 0 {
		words += missing
	}
	words = max(0, min(words, l.maxTokens-len(r.tokens)))
	if words > 0 {
		complete := ends && len(r.tokens)+words < l.maxTokens
		r.say(seed, words, complete)
	}
	for _, c := range s.calls {
		r.callTool(c)
	}
	if ends {
		r.tokens = append(r.tokens, tokenEndOfTurn)
	}
	switch {
	case len(r.tokens) > l.maxTokens:
		r.cut(l.maxTokens)
	case ends:
		r.finish = "stop"
	}
	r.cutAtToken(l)
	r.cutAtString(l)
	return r
}

// think adds a thought of n tokens between its marks.
func (r *reply) think(seed uint64, n int) {
	from := len(r.tokens)
	text := make([]byte, 0, textBytes*n)
	for i := range n {
		text = appendWord(text, seed, i, i == n-1)
	}
	p := part{kind: thought, from: from, lead: 1, text: string(text)}
	r.tokens = appendText(append(r.tokens, tokenThink), p.text)
	r.tokens = append(r.tokens, tokenThinkEnd)
	p.to = len(r.tokens)
	r.parts = append(r.parts, p)
}

// say adds n words; complete ones end in a full stop.
func (r *reply) say(seed uint64, n int, complete bool) {
	text := make([]byte, 0, textBytes*n)
	for i := range n {
		text = appendWord(text, seed, i, complete && i == n-1)
	}
	p := part{kind: content, from: len(r.tokens), text: string(text)}
	r.tokens = appendText(slices.Grow(r.tokens, n+1), p.text)
	p.to = len(r.tokens)
	r.parts = append(r.parts, p)
}

func (r *reply) callTool(c call) {
	p := part{kind: toolCall, from: len(r.tokens), text: c.arguments, call: c}
	r.tokens = appendCall(r.tokens, c.id, c.name, c.arguments)
	p.to = len(r.tokens)
	p.lead = p.to - p.from - (len(c.arguments)+textBytes-1)/textBytes
	r.parts = append(r.parts, p)
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

// shown is the part's text when n tokens of the reply are out.
func (p *part) shown(n, hold int) string {
	if n >= p.to {
		return p.text
	}
	bytes := min(textBytes*(n-p.from-p.lead), len(p.text)) - hold
	if bytes <= 0 {
		return ""
	}
	// Half a character is none.
	for bytes < len(p.text) && bytes > 0 && !utf8.RuneStart(p.text[bytes]) {
		bytes--
	}
	return p.text[:bytes]
}

// cut ends the reply after n tokens.
func (r *reply) cut(n int) {
	r.tokens = r.tokens[:min(n, len(r.tokens))]
	for i := range r.parts {
		p := &r.parts[i]
		if p.from >= n {
			r.parts = r.parts[:i]
			return
		}
		if p.to > n {
			p.text = p.shown(n, 0)
			p.to = n
		}
	}
}

// cutAtToken ends the reply with the first stop token, which has no text.
func (r *reply) cutAtToken(l limits) {
	if len(l.stopTokens) == 0 || l.minTokens >= len(r.tokens) {
		return
	}
	i := slices.IndexFunc(r.tokens[l.minTokens:], func(t token) bool { return slices.Contains(l.stopTokens, t) })
	if i < 0 {
		return
	}
	i += l.minTokens
	t := r.tokens[i]
	if t != tokenEndOfTurn {
		r.reason = t
	}
	r.cut(i)
	r.tokens, r.finish = append(r.tokens, t), "stop"
}

// cutAtString ends the reply with the token that completes a stop string in
// what is said or thought.
func (r *reply) cutAtString(l limits) {
	if len(l.stop) == 0 {
		return
	}
	for i := range r.parts {
		p := &r.parts[i]
		if p.kind == toolCall {
			continue
		}
		begin, end, found := findStop(p.text, textBytes*max(0, l.minTokens-p.from-p.lead), l.stop)
		if found == "" {
			continue
		}
		r.cut(p.from + p.lead + (end+textBytes-1)/textBytes)
		if l.keepStop {
			begin = end
		}
		p.text = p.text[:begin]
		r.finish, r.reason = "stop", found
		return
	}
}

// findStop finds the stop string that ends first, behind barred bytes, and of
// several that end there the longest.
func findStop(text string, barred int, stops []string) (begin, end int, found string) {
	end = len(text) + 1
	for _, s := range stops {
		from := max(0, barred-len(s)+1)
		if from > len(text) {
			continue
		}
		i := strings.Index(text[from:], s)
		if i < 0 {
			continue
		}
		i += from
		if e := i + len(s); e < end || e == end && i < begin {
			begin, end, found = i, e, s
		}
	}
	return begin, end, found
}
