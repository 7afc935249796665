package vllmapi

import "strconv"

// renderer tells the client of one API what happens to its request: as a
// stream, step by step, or at once in the end. Its methods add to b. There is
// one for each job.
type renderer interface {
	// begin goes out with a stream's header, before the engine has done
	// anything.
	begin(b []byte) []byte
	// first goes out with the first token, before its event.
	first(b []byte) []byte
	event(b []byte, e *event) []byte
	// end closes a stream that came to its end.
	end(b []byte) []byte
	// broken closes a stream that a fault ends.
	broken(b []byte, err *apiError) []byte
	// whole is the answer in one piece.
	whole(b []byte) []byte
}

// done ends a stream of chats and completions.
const done = "data: [DONE]\n\n"

// usage counts tokens for chats and completions.
type usage struct {
	prompt, completion int
	cached             int // -1: not told
	created            int // put into the cache, if cached is told
	media              int // of the prompt, if cached is told
	thought            int // notTold, nullTold or the number
}

const (
	notTold  = -1 // the member is left out
	nullTold = -2 // the member is null
)

func (j *job) usage() usage {
	u := usage{prompt: j.promptTokens, completion: j.generated, cached: -1, thought: notTold}
	if j.g.onlyEcho {
		u.completion = 0
	}
	if silent := j.s.c.SilentMisses && j.cached() == 0; !j.s.c.NoPromptTokensDetails && !silent {
		u.cached, u.created, u.media = j.cached(), j.cacheable-j.cached(), j.media
	}
	return u
}

// thoughts is how many tokens were thought, or notTold if the server has no eye
// for it.
func (j *job) thoughts() int {
	if !j.s.c.Reasoning {
		return notTold
	}
	sum := 0
	for _, q := range j.sequences {
		sum += q.thoughtTokens(q.generated)
	}
	return sum
}

// appendUsage writes usage with null for what is not told, or without it. Chats
// tell of the tokens that are new in the cache, completions don't.
func appendUsage(b []byte, u usage, nulls, chat bool) []byte {
	b = strconv.AppendInt(append(b, `{"prompt_tokens":`...), int64(u.prompt), 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), int64(u.prompt+u.completion), 10)
	b = strconv.AppendInt(append(b, `,"completion_tokens":`...), int64(u.completion), 10)
	switch {
	case u.cached >= 0:
		b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), int64(u.cached), 10)
		switch {
		case chat:
			b = strconv.AppendInt(append(b, `,"created_cache_tokens":`...), int64(u.created), 10)
		case nulls:
			b = append(b, `,"created_cache_tokens":null`...)
		}
		switch {
		case u.media > 0:
			b = append(strconv.AppendInt(append(b, `,"multimodal_tokens":{"image":`...), int64(u.media), 10), '}')
		case nulls:
			b = append(b, `,"multimodal_tokens":null`...)
		}
		b = append(b, '}')
	case nulls:
		b = append(b, `,"prompt_tokens_details":null`...)
	}
	switch {
	case u.thought >= 0:
		b = append(strconv.AppendInt(append(b, `,"completion_tokens_details":{"reasoning_tokens":`...), int64(u.thought), 10), '}')
	case nulls || u.thought == nullTold:
		b = append(b, `,"completion_tokens_details":null`...)
	}
	return append(b, '}')
}

// appendHead begins an object of chats and completions up to its choices.
func (j *job) appendHead(b []byte, object string) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, j.id)
	b = append(append(append(b, `,"object":"`...), object...), `","created":`...)
	b = strconv.AppendInt(b, j.created, 10)
	b = append(b, `,"model":`...)
	b = appendString(b, j.g.model)
	return append(b, `,"choices":[`...)
}

// appendReason writes what ended a reply.
func appendReason(b []byte, reason any) []byte {
	switch v := reason.(type) {
	case string:
		return appendString(b, v)
	case token:
		return strconv.AppendUint(b, v.id(), 10)
	}
	return append(b, "null"...)
}

// appendBroken ends a stream of chats and completions with an error.
func appendBroken(b []byte, err *apiError) []byte {
	b = append(b, "data: "...)
	b = append(b, encode(err.body())...)
	return append(b, "\n\n"+done...)
}

// closeStream ends a stream of chats and completions, with usage if that was
// asked for.
func (j *job) closeStream(b, head []byte, u usage) []byte {
	if j.g.includeUsage {
		b = append(append(b, head...), `],"usage":`...)
		b = appendUsage(b, u, false, j.g.api == chatAPI)
		b = append(b, `,"system_fingerprint":`...)
		b = appendString(b, j.s.fingerprint)
		b = append(b, "}\n\n"...)
	}
	return append(b, done...)
}

// closeEvent ends an event behind its choice.
func (j *job) closeEvent(b []byte, u usage, last bool) []byte {
	b = append(b, ']')
	if j.g.continuousUsage {
		b = append(b, `,"usage":`...)
		b = appendUsage(b, u, false, j.g.api == chatAPI)
	}
	if last && !j.g.includeUsage {
		b = append(b, `,"system_fingerprint":`...)
		b = appendString(b, j.s.fingerprint)
	}
	return append(b, "}\n\n"...)
}
