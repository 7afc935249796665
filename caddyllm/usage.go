package caddyllm

import (
	"bytes"
	"math"
	"strconv"
	"sync"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// tailBytes is how much of an answer's end is kept to find its usage in,
// bytes. In streams the usage is an event of its own of some 300 bytes before
// the last one, and in whole answers it follows the choices. Where these ask for
// it, all token ids of the prompt come behind it.
const tailBytes = 4096

// tail keeps the last bytes of what was written to it, at least tailBytes of
// them if there were as many.
type tail struct {
	buf   *[2 * tailBytes]byte
	n     int
	whole bool         // what goes is looked through too: it is no stream of short events
	found *route.Usage // in what is gone
}

var tails = sync.Pool{New: func() any { return new([2 * tailBytes]byte) }}

func (t *tail) write(p []byte) {
	if t.buf == nil {
		t.buf = tails.Get().(*[2 * tailBytes]byte)
	}
	if len(p) > tailBytes && !t.whole {
		p = p[len(p)-tailBytes:]
	}
	for len(p) > 0 {
		piece := p[:min(len(p), tailBytes)]
		if p = p[len(piece):]; t.n+len(piece) > len(t.buf) {
			if t.whole && (bytes.Contains(t.buf[:t.n], usageKey) || bytes.Contains(t.buf[:t.n], infoKey)) {
				if u := parseUsage(t.buf[:t.n]); u != nil {
					t.found = u
				}
			}
			t.n = copy(t.buf[:], t.buf[t.n-tailBytes:t.n])
		}
		t.n += copy(t.buf[t.n:], piece)
	}
}

// usage is what the answer told of its tokens, nil if nothing.
func (t *tail) usage() *route.Usage {
	if u := parseUsage(t.bytes()); u != nil {
		return u
	}
	return t.found
}

func (t *tail) bytes() []byte {
	if t.buf == nil {
		return nil
	}
	return t.buf[:t.n]
}

// release gives the memory back; the tail is empty after it.
func (t *tail) release() {
	if t.buf != nil {
		tails.Put(t.buf)
		t.buf, t.n = nil, 0
	}
}

// SGLang's own API has another name for it.
var usageKey, infoKey = []byte(`"usage":`), []byte(`"meta_info":`)

// parseUsage finds the last usage object in the end of an answer, streamed or
// not. The key can't come from generated text: a quote inside a JSON string is
// escaped. It returns nil where there is none, which is usual for streams
// whose client didn't ask for it.
func parseUsage(end []byte) *route.Usage {
	for _, key := range [...][]byte{usageKey, infoKey} {
		for rest := end; ; {
			i := bytes.LastIndex(rest, key)
			if i < 0 {
				break
			}
			if u := decodeUsage(rest[i+len(key):]); u != nil {
				return u
			}
			rest = rest[:i] // a null, as in chunks before the last
		}
	}
	return nil
}

// decodeUsage reads the object that data begins with, in the names of chat and
// completions, of responses, or of messages. A response that ran tools of the
// engine's own was several prompts, each with the one before in it: of those it is
// the first that the request has, and whose start was cached or not.
func decodeUsage(data []byte) *route.Usage {
	const absent = math.MinInt
	prompt, completion, input, output := 0, 0, 0, 0
	created, read, cached := 0, absent, absent
	var prompts, hits turns
	sound := true
	whole := eachNumber(data, func(outer, key, number []byte) {
		var into *int
		if len(key) == 0 {
			switch string(outer) {
			case "input_tokens_per_turn":
				into = prompts.next()
			case "cached_tokens_per_turn":
				into = hits.next()
			}
		}
		switch string(key) {
		case "prompt_tokens":
			into = &prompt
		case "completion_tokens":
			into = &completion
		case "input_tokens":
			into = &input
		case "output_tokens":
			into = &output
		// Of /v1/messages, whose input_tokens are what neither is.
		case "cache_creation_input_tokens":
			into = &created
		case "cache_read_input_tokens":
			into = &read
		case "cached_tokens":
			if o := string(outer); o == "prompt_tokens_details" || o == "input_tokens_details" || o == "" {
				into = &cached
			}
		}
		if into == nil {
			return
		}
		n, ok := tokensIn(number)
		*into, sound = n, sound && ok
	})
	if !whole || !sound {
		return nil
	}
	if prompts.count > 1 {
		// Where the first turn's hits aren't told, nothing is learned: silence would
		// pass for none.
		if input, cached = prompts.first, hits.first; hits.count == 0 {
			input, cached = 0, absent
		}
	}
	usage := &route.Usage{}
	for _, n := range [...]int{read, cached} {
		if n != absent {
			usage.CachedTokens, usage.CachedKnown = n, true
		}
	}
	usage.PromptTokens, usage.CompletionTokens = max(prompt, input), max(completion, output)
	if read != absent {
		usage.Form = route.FormMessage
		usage.PromptTokens += read + created
	} else if input > 0 {
		usage.Form = route.FormResponse
	}
	if usage.PromptTokens <= 0 || usage.CompletionTokens < 0 || usage.CachedTokens < 0 || usage.CachedTokens > usage.PromptTokens {
		return nil // not numbers to learn from
	}
	return usage
}

// turns are a list's numbers, of which the first matters.
type turns struct{ first, other, count int }

func (t *turns) next() *int {
	if t.count++; t.count == 1 {
		return &t.first
	}
	return &t.other
}

// tokensIn reads a number of tokens. Not every server writes it without a point.
func tokensIn(number []byte) (int, bool) {
	n, err := strconv.Atoi(string(number))
	if err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(number), 64)
	return int(f), err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53
}

// usageDepth bounds how deep a usage object is nested.
const usageDepth = 8

// eachNumber tells of each number in the object that data begins with, its key,
// and the key of the object round it. It reports whether the object has an end.
// What else it holds is passed over: it is the engine's own, and read for each
// answer.
func eachNumber(data []byte, tell func(outer, key, number []byte)) bool {
	var keys [usageDepth + 1][]byte // keys[depth]: the last one there
	depth := 0
	for i := 0; i < len(data); {
		switch c := data[i]; {
		case c == '{' || c == '[':
			if depth++; depth > usageDepth {
				return false
			}
			keys[depth] = nil
			i++
		case c == '}' || c == ']':
			if depth--; depth <= 0 {
				return depth == 0
			}
			i++
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case depth == 0:
			return false // a null
		case c == '"':
			end := closingQuote(data, i+1)
			if end < 0 {
				return false
			}
			after := bytes.TrimLeft(data[end+1:], " \t\n\r")
			if len(after) > 0 && after[0] == ':' {
				keys[depth] = data[i+1 : end]
			}
			i = end + 1
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(data) && bytes.IndexByte([]byte("0123456789.eE+-"), data[end]) >= 0 {
				end++
			}
			tell(keys[depth-1], keys[depth], data[i:end])
			i = end
		default:
			i++
		}
	}
	return false
}

// closingQuote is where the string ends whose text begins at i, -1 if nowhere.
func closingQuote(data []byte, i int) int {
	for ; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}
