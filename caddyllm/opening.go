package caddyllm

import (
	"bytes"
	"strings"
)

// opening finds out what an answer of status 200 begins with: what the engine
// computed, or words from before that. Servers send comments and pings while a
// request waits, some send an event that says no more than that they have it,
// and some tell of an error only when the status has gone out. Taken for a first
// token, such words would make a busy or a broken engine look like the fastest.
type opening struct {
	events  bool // the answer is a stream of events, else JSON or anything
	other   bool // it was looked at, and is none that doesn't say so
	line    [openingLine]byte
	n       int  // bytes of line, the beginning of the one under way
	passed  bool // that line says nothing, whatever follows in it
	passing bool // nor does the event that it is in
	cr      bool // the last byte was a carriage return
}

// openingLine is how much of a line is looked at, bytes. The longest beginning
// that says what it is is "event: response.in_progress".
const openingLine = 64

// sign is what an answer's beginning says.
type sign uint8

const (
	undecided sign = iota // nothing yet
	nothing               // nothing, and nor does what belongs to it
	computed              // the engine has begun
	errored               // there will be no answer
)

// kinds of events that say more than that there is one. Those of /v1/responses
// go out when the request was accepted, long before its first token.
var kinds = map[string]sign{
	"ping":                 nothing,
	"response.created":     nothing,
	"response.queued":      nothing,
	"response.in_progress": nothing,
	"error":                errored,
	"response.failed":      errored,
}

// read looks at the next bytes, until it has told computed or errored.
func (o *opening) read(p []byte) sign {
	if !o.events {
		return o.whole(p)
	}
	for len(p) > 0 {
		part, ends := p, false
		if eol := bytes.IndexAny(p, "\r\n"); eol >= 0 {
			part, ends = p[:eol], true
		}
		if ends && len(part) == 0 && p[0] == '\n' && o.cr {
			o.cr, p = false, p[1:] // the second half of a line's end
			continue
		}
		o.n += copy(o.line[o.n:], part)
		if !o.passed {
			switch said := o.field(o.line[:o.n], ends); said {
			case computed, errored:
				return said
			case nothing:
				o.passed = true
			}
		}
		if !ends {
			o.cr = false
			return undecided
		}
		o.passing = o.passing && o.n > 0
		o.n, o.passed, o.cr = 0, false, p[len(part)] == '\r'
		p = p[len(part)+1:]
	}
	return undecided
}

// whole looks at the next bytes of an answer that calls itself no stream. White
// space in front is from servers that hold a connection with it.
func (o *opening) whole(p []byte) sign {
	if o.n == 0 {
		p = bytes.TrimLeft(p, " \t\r\n")
	}
	n := copy(o.line[o.n:], p)
	o.n += n
	line := o.line[:o.n]
	if !o.other {
		switch likeEvents(line) {
		case undecided:
			return undecided
		case computed:
			o.other = true
		default:
			begun := bytes.Clone(line)
			o.events, o.n = true, 0
			if said := o.read(begun); said != undecided {
				return said
			}
			return o.read(p[n:])
		}
	}
	return o.member(line, o.n == len(o.line))
}

// likeEvents reports whether an answer of another type, or of none, begins like
// a stream of events: nothing if it does, computed if it doesn't.
func likeEvents(line []byte) sign {
	if len(line) == 0 {
		return undecided
	}
	sure := computed
	for _, field := range [...]string{":", "data:", "event:", "id:", "retry:"} {
		switch {
		case bytes.HasPrefix(line, []byte(field)):
			return nothing
		case strings.HasPrefix(field, string(line)):
			sure = undecided
		}
	}
	return sure
}

// field judges a line of a stream of events by its beginning. whole says that
// no more of it comes.
func (o *opening) field(line []byte, whole bool) sign {
	whole = whole || len(line) == len(o.line)
	name, value, ok := bytes.Cut(line, []byte{':'})
	switch {
	case len(line) == 0 || ok && len(name) == 0: // a comment
		return nothingIf(whole || ok)
	case !ok && !whole && len(name) <= len("retry"):
		return undecided
	}
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "id", "retry":
		return nothing
	case "event":
		if !whole {
			return undecided
		}
		said := kinds[string(value)]
		o.passing = o.passing || said == nothing
		if said == errored {
			return errored
		}
		return nothing // the data that follow say more
	case "data":
		if o.passing || whole && len(value) == 0 {
			return nothing
		}
		said := o.member(value, whole)
		o.passing = o.passing || said == nothing
		return said
	}
	return computed // no event at all
}

func nothingIf(sure bool) sign {
	if sure {
		return nothing
	}
	return undecided
}

// member judges JSON by the first member of its object. Whatever isn't known to
// be something else was computed.
func (o *opening) member(text []byte, whole bool) sign {
	unsure := undecided
	if whole {
		unsure = computed
	}
	text, ok := after(text, '{')
	if !ok {
		return orComputed(text, unsure)
	}
	key, text, ok := quoted(text)
	if !ok {
		return orComputed(text, unsure)
	}
	if text, ok = after(text, ':'); !ok {
		return orComputed(text, unsure)
	}
	switch text = bytes.TrimLeft(text, " \t\r\n"); string(key) {
	case "error":
		switch {
		case len(text) == 0:
			return unsure
		case text[0] == 'n', text[0] == 'f', bytes.HasPrefix(text, []byte(`""`)): // null, false
			return computed
		}
		return errored
	case "object", "type":
		value, text, ok := quoted(text)
		switch {
		case !ok:
			return orComputed(text, unsure)
		case string(key) == "type" && o.events && kinds[string(value)] != undecided:
			return kinds[string(value)]
		case string(value) == "error":
			return errored
		}
	}
	return computed
}

// orComputed is unsure if text has ended, and computed if it went on in another
// way than expected.
func orComputed(text []byte, unsure sign) sign {
	if len(text) == 0 {
		return unsure
	}
	return computed
}

// after cuts at c, which text begins with but for white space.
func after(text []byte, c byte) (rest []byte, ok bool) {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 || text[0] != c {
		return text, false
	}
	return text[1:], true
}

// quoted cuts a plain string off. Where text ends before the string does, the
// rest is empty.
func quoted(text []byte) (value, rest []byte, ok bool) {
	text, ok = after(text, '"')
	if !ok {
		return nil, text, false
	}
	value, rest, ok = bytes.Cut(text, []byte{'"'})
	if !ok {
		return nil, nil, false
	}
	return value, rest, true
}

// blamesEngine reports whether an error says that the engine can't serve, by its
// code or, where it has none, by the words of the APIs for what a client did
// wrong.
func blamesEngine(text []byte) bool {
	if code := errorCode(text); code >= 400 {
		return blames(code)
	}
	for _, word := range clientErrors {
		if bytes.Contains(text, []byte(word)) {
			return false
		}
	}
	return true
}

// clientErrors are types and codes of errors, quoted: no text can hold them so.
var clientErrors = [...]string{
	`"invalid_request_error"`, `"BadRequestError"`, `"context_length_exceeded"`, `"invalid_prompt"`, // OpenAI and vLLM
	`"not_found_error"`, `"NotFoundError"`, `"authentication_error"`, `"permission_error"`, `"request_too_large"`, // Anthropic
	`"validation"`, // TGI
}

// brokeOff reports whether a stream of events ends with an error that is the
// engine's, by its end: engines that fail in the middle of an answer say so in
// place of the rest.
func brokeOff(end []byte) bool {
	for {
		before, event := cutEvent(end)
		if event == nil {
			return false
		}
		o := opening{events: true}
		said := o.read(event)
		if said == undecided {
			said = o.read([]byte{'\n'})
		}
		switch {
		case said == errored:
			return blamesEngine(event)
		case said == computed && !bytes.HasSuffix(event, []byte("[DONE]")):
			return false
		}
		end = before
	}
}

// cutEvent cuts the last event off. One whose beginning isn't there is none.
func cutEvent(text []byte) (before, event []byte) {
	text = bytes.TrimRight(text, "\r\n")
	for i := len(text); i > 0; {
		j := bytes.LastIndexByte(text[:i], '\n')
		if j >= 0 && len(bytes.TrimRight(text[j+1:i], "\r")) == 0 {
			return text[:j], text[i+1:]
		}
		i = j
	}
	return nil, nil
}

// errorCode is the status that an error object tells, 0 if none.
func errorCode(text []byte) int {
	_, text, ok := bytes.Cut(text, []byte(`"code":`))
	if !ok {
		return 0
	}
	text = bytes.TrimLeft(text, ` "`)
	code := 0
	for len(text) > 0 && text[0] >= '0' && text[0] <= '9' && code < 1000 {
		code, text = 10*code+int(text[0]-'0'), text[1:]
	}
	return code
}
