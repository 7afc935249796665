package caddyllm

import (
	"net/http"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// Why a request went to the fallback policy. The label values of
// caddy_llm_prefix_fallbacks_total, and what follows "fallback:" in a reason.
const (
	whyMethod      = "method"       // not a POST
	whyPath        = "path"         // no path of an engine that takes prompts
	whyEncoding    = "encoding"     // a body in an unknown coding, or damaged
	whyIncremental = "incremental"  // the client forbids buffering
	whyUpgrade     = "upgrade"      // the connection becomes something else
	whyNoBody      = "no_body"      // a POST without one
	whyBodyError   = "body_error"   // the body could not be read
	whyBroken      = "broken_json"  // the body isn't JSON as engines accept it
	whyNoPrompt    = "no_prompt"    // JSON without a prompt
	whyMaxBody     = "max_body"     // no prompt within the first max_body bytes
	whyMemory      = "memory"       // no room to keep enough of one more body
	whyPanic       = "panic"        // a fault of ours
	whyNoSelection = "no_selection" // the decision had nothing to say
)

// read finds what the decision needs of a request's body, or why it can't be
// had. previous is the response that the prompt goes on from.
func (f *flight) read(s *prompt.Scanner, r *http.Request) (req route.Request, previous uint64, why string) {
	text, whole := f.body.text(), f.body.whole
	if len(f.coded) > 0 {
		// Room for the most that it may come to, until it is scanned.
		most := int(mostText(text, f.policy.settings.maxBody))
		if !bodiesRoom.take(most) {
			return req, 0, whyMemory
		}
		defer bodiesRoom.give(most)
		var err error
		if text, whole, err = decode(f.coded, text, whole, f.policy.settings.maxBody); err != nil {
			return req, 0, whyEncoding
		}
	}
	if f.form != "" {
		req, ok := readForm(f.form, text)
		if !ok {
			return req, 0, whyNoPrompt
		}
		return req, 0, ""
	}
	s.Seed, s.PathModel = f.policy.settings.seed, prompt.ModelOf(r.URL.Path)
	scanned, status := s.Scan(f.kind, text, whole, f.policy.settings.block)
	if why := fallbackReason(status, whole); why == whyMaxBody && f.body.tight {
		return req, 0, whyMemory
	} else if why != "" {
		return req, 0, why
	}
	if f.session == 0 && f.policy.settings.sessionHeader != "" {
		f.session = scanned.Session
	}
	if scanned.Unread {
		f.session = 0 // what its home has of it is of no use to it
	}
	req = routeRequest(&scanned)
	// What a body asks for may stand where it is cut off.
	req.Stream = req.Stream || prompt.Streams(r.URL.Path, scanned.Whole || !whole)
	if left := r.ContentLength - int64(len(text)); !whole && len(f.coded) == 0 && left > 0 {
		req.Bytes += int(left)
	}
	return req, scanned.Previous, ""
}

func fallbackReason(s prompt.Status, whole bool) string {
	switch {
	case s == prompt.OK:
		return ""
	case !whole:
		return whyMaxBody
	case s == prompt.NoPrompt:
		return whyNoPrompt
	default:
		return whyBroken
	}
}

func routeRequest(s *prompt.Prompt) route.Request {
	req := route.Request{
		Chain:       s.Chain,
		Bytes:       s.Bytes,
		ExtraTokens: s.ExtraTokens,
		Model:       s.Model,
		MaxTokens:   s.MaxTokens,
		Sequences:   s.N,
		Stream:      s.Stream,
		Partial:     s.Previous != 0,
		Unread:      s.Unread,
		Background:  s.Background,
	}
	if !s.Kind.Generates() || s.Unkept || s.Previous != 0 {
		// It is work, but leaves nothing in the cache of KV blocks; or what it
		// leaves begins with what only the engine knows.
		req.Chain = nil
	}
	return req
}
