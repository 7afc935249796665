package caddyllm

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// tailBytes is how much of an answer's end is kept to find its usage in,
// bytes. In streams the usage is an event of its own of some 300 bytes before
// the last one, and in whole answers it follows the choices.
const tailBytes = 4096

// tail keeps the last bytes of what was written to it, at least tailBytes of
// them if there were as many.
type tail struct {
	buf *[2 * tailBytes]byte
	n   int
}

var tails = sync.Pool{New: func() any { return new([2 * tailBytes]byte) }}

func (t *tail) write(p []byte) {
	if t.buf == nil {
		t.buf = tails.Get().(*[2 * tailBytes]byte)
	}
	if len(p) > tailBytes {
		p = p[len(p)-tailBytes:]
	}
	if t.n+len(p) > len(t.buf) {
		t.n = copy(t.buf[:], t.buf[t.n-tailBytes:t.n])
	}
	t.n += copy(t.buf[t.n:], p)
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

var usageKey = []byte(`"usage":`)

// parseUsage finds the last usage object in the end of an answer, streamed or
// not. The key can't come from generated text: a quote inside a JSON string is
// escaped. It returns nil where there is none, which is usual for streams
// whose client didn't ask for it.
func parseUsage(end []byte) *route.Usage {
	for {
		i := bytes.LastIndex(end, usageKey)
		if i < 0 {
			return nil
		}
		if u := decodeUsage(end[i+len(usageKey):]); u != nil {
			return u
		}
		end = end[:i] // a null, as in chunks before the last
	}
}

// decodeUsage reads the object that data begins with, in the names of chat and
// completions or in those of responses.
func decodeUsage(data []byte) *route.Usage {
	type details struct {
		CachedTokens *int `json:"cached_tokens"`
	}
	var u *struct {
		PromptTokens     int      `json:"prompt_tokens"`
		CompletionTokens int      `json:"completion_tokens"`
		PromptDetails    *details `json:"prompt_tokens_details"`
		InputTokens      int      `json:"input_tokens"`
		OutputTokens     int      `json:"output_tokens"`
		InputDetails     *details `json:"input_tokens_details"`
		// Of /v1/messages, whose input_tokens are what neither is.
		CacheRead    *int `json:"cache_read_input_tokens"`
		CacheCreated int  `json:"cache_creation_input_tokens"`
	}
	// The decoder stops at the object's end; what follows is not its concern.
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&u); err != nil || u == nil {
		return nil
	}
	usage := &route.Usage{
		PromptTokens:     max(u.PromptTokens, u.InputTokens),
		CompletionTokens: max(u.CompletionTokens, u.OutputTokens),
	}
	if u.InputTokens > 0 {
		usage.Form = route.FormResponse
	}
	if u.CacheRead != nil {
		usage.Form = route.FormMessage
		usage.PromptTokens += *u.CacheRead + u.CacheCreated
		usage.CachedTokens, usage.CachedKnown = *u.CacheRead, true
	}
	for _, d := range []*details{u.PromptDetails, u.InputDetails} {
		if d != nil && d.CachedTokens != nil {
			usage.CachedTokens, usage.CachedKnown = *d.CachedTokens, true
		}
	}
	if usage.PromptTokens <= 0 || usage.CompletionTokens < 0 || usage.CachedTokens < 0 || usage.CachedTokens > usage.PromptTokens {
		return nil // not numbers to learn from
	}
	return usage
}
