package vllmapi

import (
	"slices"
	"strings"
)

// Bounds of a reply that ends by itself, in tokens with the end-of-turn token:
// its length is drawn from the seed, each one as likely as the others.
const (
	naturalMin = 16
	naturalMax = 256
)

// reply is all that a sequence will generate. It is known when the request
// comes, since it follows from the seed; the engine only decides when.
type reply struct {
	tokens []token
	text   string // what the client sees; ends before a stop string
	finish string // "stop" or "length"
	reason any    // stop string or stop token id that ended it, or nil
}

// limits say where a reply ends.
type limits struct {
	maxTokens, minTokens int
	ignoreEOS            bool
	stop                 []string
	stopTokens           []token
	keepStop             bool // the stop string stays in the text
}

// plan makes the reply of one sequence.
func plan(seed uint64, l limits) reply {
	length := naturalMin + int(mix(seed)%(naturalMax-naturalMin+1))
	length = max(length, l.minTokens+1) // the end of turn is barred until minTokens are out
	r := reply{finish: "length"}
	ends := !l.ignoreEOS && length <= l.maxTokens
	words := l.maxTokens
	if ends {
		words = length - 1
		r.finish = "stop"
	}
	text := make([]byte, 0, textBytes*words)
	for i := range words {
		text = appendWord(text, seed, i, ends && i == words-1)
	}
	r.text = string(text)
	r.tokens = appendText(make([]token, 0, words+1), r.text)
	if ends {
		r.tokens = append(r.tokens, tokenEndOfTurn)
	}
	r.cutAtToken(l)
	r.cutAtString(l)
	return r
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
	if r.tokens[i] != tokenEndOfTurn {
		r.reason = r.tokens[i]
	}
	r.tokens, r.text, r.finish = r.tokens[:i+1], r.shown(i), "stop"
}

// cutAtString ends the reply with the token that completes a stop string. The
// earliest end counts, and of several strings that end there the longest.
func (r *reply) cutAtString(l limits) {
	end, begin, found := len(r.text)+1, 0, ""
	for _, s := range l.stop {
		// What ends within the first minTokens tokens doesn't count.
		from := max(0, textBytes*l.minTokens-len(s)+1)
		if from > len(r.text) {
			continue
		}
		i := strings.Index(r.text[from:], s)
		if i < 0 {
			continue
		}
		i += from
		if e := i + len(s); e < end || e == end && i < begin {
			end, begin, found = e, i, s
		}
	}
	if found == "" {
		return
	}
	r.tokens = r.tokens[:(end+textBytes-1)/textBytes]
	r.finish, r.reason = "stop", found
	if l.keepStop {
		begin = end
	}
	r.text = r.text[:begin]
}

// shown is the text of the first n tokens.
func (r *reply) shown(n int) string { return r.text[:min(textBytes*n, len(r.text))] }
