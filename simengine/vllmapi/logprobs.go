package vllmapi

import (
	"strconv"
	"unicode/utf8"
)

// Log probabilities follow from the seed: the generated token is always the
// most likely, the others are words that were not said.

// likely is a token with its logarithm of probability.
type likely struct {
	token   token
	logprob float64
}

// likelies makes n tokens for the place of t, itself first; at least one.
func likelies(seed uint64, place int, t token, n int) []likely {
	r := mix(seed ^ mix(uint64(place)) ^ 0x6c6f67)
	list := []likely{{t, -float64(1+r%1000) / 1024}}
	for i := 1; i < n; i++ {
		word := appendWord(nil, r, i, false)
		p := list[i-1].logprob - float64(1+mix(r+uint64(i))%2048)/1024
		list = append(list, likely{textToken(string(word)), p})
	}
	return list
}

// likelyCount is how many tokens are told for each; a whole vocabulary would be
// too many.
func (g *generation) likelyCount() int {
	if g.logprobs < 0 {
		return maxLogprobs
	}
	return max(1, g.logprobs)
}

// tokenText is a token as log probabilities name it.
func (g *generation) tokenText(t token) string {
	if g.asIDs {
		return "token_id:" + strconv.FormatUint(t.id(), 10)
	}
	switch t {
	case tokenBegin:
		return "<|begin_of_text|>"
	case tokenHeader:
		return "<|start_header_id|>"
	case tokenHeaderEnd:
		return "<|end_header_id|>"
	case tokenEndOfTurn:
		return "<|eot_id|>"
	case tokenThink:
		return "<think>"
	case tokenThinkEnd:
		return "</think>"
	case tokenCall:
		return "<tool_call>"
	}
	return string(t.appendBytes(nil))
}

// appendChatLogprobs adds the member that chats have for tokens from to to of a
// sequence.
func (g *generation) appendChatLogprobs(b []byte, q *sequence, from, to int) []byte {
	b = append(b, `{"content":[`...)
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		list := likelies(q.seed, i, q.token(i), g.likelyCount())
		b = g.appendLikely(b, list[0])
		b = append(b, `,"top_logprobs":[`...)
		if g.logprobs == 0 {
			list = nil
		}
		for k, l := range list {
			if k > 0 {
				b = append(b, ',')
			}
			b = append(g.appendLikely(b, l), '}')
		}
		b = append(b, `]}`...)
	}
	return append(b, `]}`...)
}

// appendLikely adds an object that is left open.
func (g *generation) appendLikely(b []byte, l likely) []byte {
	text := g.tokenText(l.token)
	b = appendString(append(b, `{"token":`...), text)
	b = appendFloat(append(b, `,"logprob":`...), l.logprob)
	return appendByteList(append(b, `,"bytes":`...), text)
}

func appendByteList(b []byte, text string) []byte {
	b = append(b, '[')
	for i, c := range []byte(text) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(c), 10)
	}
	return append(b, ']')
}

// appendTextLogprobs adds the member that completions have: lists of offsets,
// probabilities, tokens and alternatives. Tokens of an echoed prompt come
// first; of the very first nothing is known. offset is that of the first
// token, in characters; the next one's is returned.
func (g *generation) appendTextLogprobs(b []byte, prompt []token, q *sequence, from, to, offset int) ([]byte, int) {
	tokens := q.appendTokens(prompt[:len(prompt):len(prompt)], from, to)
	seed, place := q.seed, from-len(prompt)
	b = append(b, `{"text_offset":[`...)
	for i, t := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(offset), 10)
		offset += utf8.RuneCountInString(g.tokenText(t))
	}
	b = append(b, `],"token_logprobs":[`...)
	for i, t := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		if len(prompt) > 0 && i == 0 {
			b = append(b, "null"...)
			continue
		}
		b = appendFloat(b, likelies(seed, place+i, t, 1)[0].logprob)
	}
	b = append(b, `],"tokens":[`...)
	for i, t := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, g.tokenText(t))
	}
	b = append(b, `],"top_logprobs":[`...)
	for i, t := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		if len(prompt) > 0 && i == 0 {
			b = append(b, "null"...)
			continue
		}
		b = append(b, '{')
		for k, l := range likelies(seed, place+i, t, g.likelyCount()) {
			if k > 0 {
				b = append(b, ',')
			}
			b = appendString(b, g.tokenText(l.token))
			b = appendFloat(append(b, ':'), l.logprob)
		}
		b = append(b, '}')
	}
	return append(b, `]}`...), offset
}

// appendPromptLogprobs adds what is asked for of a prompt's tokens: null for
// the first, and for each other the most likely ones by their numbers.
func (g *generation) appendPromptLogprobs(b []byte, seed uint64, prompt []token) []byte {
	if g.promptLogprobs == none {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, t := range prompt {
		if i == 0 {
			b = append(b, "null"...)
			continue
		}
		b = append(b, ",{"...)
		for k, l := range likelies(seed, i-len(prompt), t, max(1, min(g.promptLogprobs, maxLogprobs))) {
			if k > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendUint(append(b, '"'), l.token.id(), 10)
			b = appendFloat(append(b, `":{"logprob":`...), l.logprob)
			b = strconv.AppendInt(append(b, `,"rank":`...), int64(k+1), 10)
			b = appendString(append(b, `,"decoded_token":`...), string(l.token.appendBytes(nil)))
			b = append(b, '}')
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendFloat writes a number as Python does.
func appendFloat(b []byte, v float64) []byte { return append(b, pyFloat(v)...) }

// appendIDs writes tokens as a list of their numbers.
func appendIDs(b []byte, tokens []token) []byte {
	b = append(b, '[')
	for i, t := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, t.id(), 10)
	}
	return append(b, ']')
}
