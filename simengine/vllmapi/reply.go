package vllmapi

import "strings"

// Bounds of a reply that ends by itself, in tokens with the end-of-turn token:
// its length is drawn from the seed, each one as likely as the others. Thoughts
// and calls of tools come on top.
const (
	naturalMin = 16
	naturalMax = 256
)

// reply is all that a sequence will generate. It is known when the request
// comes, since it follows from the seed; the engine only decides when. Words
// are made anew when they are sent, so that a long reply takes no memory.
type reply struct {
	count  int // tokens
	parts  []part
	tail   token  // behind all parts, if count says so
	finish string // "stop" or "length"
	reason any    // stop string or stop token id that ended it, or nil
	hold   int    // bytes of text that may be the beginning of a stop string
}

// limits say where a reply ends.
type limits struct {
	maxTokens, minTokens int
	ignoreEOS            bool
	stop                 []string
	stopTokens           map[token]struct{}
	keepStop             bool // the stop string stays in the text
}

// script is what a reply says besides words.
type script struct {
	thought int    // tokens of it; 0 is none
	fixed   string // instead of words, to its end
	silent  bool   // no words: the calls are all
	calls   []call // after the words
}

// plan makes the reply of one sequence.
func plan(seed uint64, l limits, s script) reply {
	r := reply{finish: "length", tail: tokenEndOfTurn}
	if !l.keepStop {
		for _, stop := range l.stop {
			r.hold = max(r.hold, len(stop)-1)
		}
	}
	if s.thought > 0 {
		r.add(part{kind: thought, seed: mix(seed ^ 0x7468696e6b), words: s.thought, lead: 1, trail: 1, complete: true})
	}
	words := 0
	if !s.silent {
		words = naturalMin - 1 + int(mix(seed)%(naturalMax-naturalMin+1))
	}
	// The end of turn is barred until minTokens are out.
	ends := !l.ignoreEOS || len(s.calls) > 0 || s.fixed != ""
	missing := l.minTokens - r.count - words
	if !ends {
		missing = l.maxTokens - r.count - words
	}
	if s.fixed != "" {
		r.add(part{kind: content, fixed: s.fixed, words: textTokens(len(s.fixed))})
		words, missing = 0, 0
	}
	if missing > 0 && len(s.calls) == 0 {
		words += missing
	}
	words = max(0, min(words, l.maxTokens-r.count))
	if words > 0 {
		r.add(part{kind: content, seed: seed, words: words, complete: ends && r.count+words < l.maxTokens})
	}
	for _, c := range s.calls {
		tokens := appendCall(nil, c.id, c.name, c.arguments)
		r.add(part{kind: toolCall, call: c, fixed: c.arguments, tokens: tokens, lead: len(tokens) - textTokens(len(c.arguments))})
	}
	if ends {
		r.count++
	}
	switch {
	case r.count > l.maxTokens:
		r.cut(l.maxTokens)
	case ends:
		r.finish = "stop"
	}
	r.cutAtToken(l)
	r.cutAtString(l)
	return r
}

// add appends a part.
func (r *reply) add(p part) {
	p.from = r.count
	p.to, p.bytes = p.from+p.lead+p.words+p.trail, textBytes*p.words
	if p.kind == toolCall {
		p.to = p.from + len(p.tokens)
	}
	if p.fixed != "" {
		p.bytes = len(p.fixed)
	}
	r.count = p.to
	r.parts = append(r.parts, p)
}

// token is the i-th token.
func (r *reply) token(i int) token {
	for k := range r.parts {
		if p := &r.parts[k]; i < p.to {
			return p.token(i - p.from)
		}
	}
	return r.tail
}

// appendTokens adds the tokens from to to.
func (r *reply) appendTokens(tokens []token, from, to int) []token {
	for i := from; i < to; i++ {
		tokens = append(tokens, r.token(i))
	}
	return tokens
}

// cut ends the reply after n tokens.
func (r *reply) cut(n int) {
	r.count = n
	for i := range r.parts {
		p := &r.parts[i]
		if p.from >= n {
			r.parts = r.parts[:i]
			return
		}
		if p.to > n {
			p.bytes = p.shown(n, 0)
			p.to = n
		}
	}
}

// cutAtToken ends the reply with the first stop token, which has no text.
func (r *reply) cutAtToken(l limits) {
	if len(l.stopTokens) == 0 {
		return
	}
	for i := l.minTokens; i < r.count; i++ {
		t := r.token(i)
		if _, stops := l.stopTokens[t]; !stops {
			continue
		}
		if t != tokenEndOfTurn {
			r.reason = t
		}
		r.cut(i)
		r.count, r.tail, r.finish = i+1, t, "stop"
		return
	}
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
		begin, end, found := findStop(p.text(), textBytes*max(0, l.minTokens-p.from-p.lead), l.stop)
		if found == "" {
			continue
		}
		r.cut(p.from + p.lead + textTokens(end))
		p.bytes = begin
		if l.keepStop {
			p.bytes = end
		}
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
