package caddyllm

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// record is what access log and placeholders tell of a request: addresses,
// words of ours and numbers, never a byte of the prompt. The log holds a
// pointer to it and writes it when the request is over, so what the answer
// told is in it too.
type record struct {
	upstream  string
	reason    string
	attempt   int
	prompt    int // tokens, estimate
	matched   int // tokens, estimate
	predicted float64
	cached    int  // tokens, -1 until known
	decided   bool // by its prompt
}

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (r *record) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("upstream", r.upstream)
	enc.AddString("reason", r.reason)
	enc.AddInt("attempt", r.attempt)
	if r.prompt > 0 {
		enc.AddInt("prompt_tokens", r.prompt)
		enc.AddInt("matched_tokens", r.matched)
		enc.AddFloat64("predicted_ttft_seconds", r.predicted)
	}
	if r.cached >= 0 {
		enc.AddInt("cached_tokens", r.cached)
	}
	return nil
}

// Placeholders, below {http.reverse_proxy.llm.*}. Those that a fallback has no
// value for are empty.
const (
	placeholders         = "http.reverse_proxy.llm."
	placeholderUpstream  = "http.reverse_proxy.llm.upstream"
	placeholderReason    = "http.reverse_proxy.llm.reason"
	placeholderAttempt   = "http.reverse_proxy.llm.attempt"
	placeholderPrompt    = "http.reverse_proxy.llm.prompt_tokens"
	placeholderMatched   = "http.reverse_proxy.llm.matched_tokens"
	placeholderPredicted = "http.reverse_proxy.llm.predicted_ttft_seconds"
	placeholderCached    = "http.reverse_proxy.llm.cached_tokens"
)

// publish tells what was decided for this attempt. Placeholders and log fields
// are per request, so each attempt sets all of them.
func (f *flight) publish(a *attempt, r *http.Request, w http.ResponseWriter) {
	defer f.policy.catch(inPublish)
	c := a.choice
	f.record = record{
		upstream:  a.upstream,
		reason:    c.reason,
		attempt:   f.record.attempt + 1,
		prompt:    c.PromptTokens,
		matched:   c.MatchedTokens,
		predicted: c.FirstToken.Seconds(),
		cached:    -1,
		decided:   c.prompt,
	}
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok && f.record.attempt == 1 {
		tell(repl, &f.record)
	}
	if extra, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok && f.record.attempt == 1 {
		extra.Set(zap.Object("llm_prefix", &f.record))
	}
	// Other policies pass no writer to their fallbacks.
	if name := f.policy.settings.expose; name != "" && w != nil {
		w.Header().Set(name, f.record.header(c.prompt))
	}
}

func (r *record) header(prompt bool) string {
	s := fmt.Sprintf("upstream=%s; reason=%s; attempt=%d", r.upstream, r.reason, r.attempt)
	if prompt {
		s += fmt.Sprintf("; prompt_tokens=%d; matched_tokens=%d; predicted_ttft_ms=%d", r.prompt, r.matched, int(r.predicted*1e3+0.5))
	}
	return s
}

// publishUsage adds what the answer told. The proxy reads answers on the
// request's goroutine, which owns the record.
func (f *flight) publishUsage(cached int) { f.record.cached = cached }

// placed is the record that a request's placeholders are of: where it goes through
// several proxies, the last one's.
type placed struct{ *record }

// placeholderTold stands for that itself. No config can name it.
const placeholderTold = placeholders + "\x00"

// tell has the replacer know the placeholders of a record. They are looked up
// when one is asked for, which most requests never do.
func tell(repl *caddy.Replacer, r *record) {
	if t, ok := repl.Get(placeholderTold); ok {
		t.(*placed).record = r
		return
	}
	repl.Map((&placed{r}).value)
}

func (t *placed) value(key string) (any, bool) {
	if !strings.HasPrefix(key, placeholders) {
		return nil, false
	}
	ofPrompt := func(v any) (any, bool) {
		if !t.decided {
			v = ""
		}
		return v, true
	}
	switch key {
	case placeholderTold:
		return t, true
	case placeholderUpstream:
		return t.upstream, true
	case placeholderReason:
		return t.reason, true
	case placeholderAttempt:
		return t.attempt, true
	case placeholderPrompt:
		return ofPrompt(t.prompt)
	case placeholderMatched:
		return ofPrompt(t.matched)
	case placeholderPredicted:
		return ofPrompt(t.predicted)
	case placeholderCached:
		if t.cached < 0 {
			return "", true
		}
		return t.cached, true
	}
	return nil, false
}
