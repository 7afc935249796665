package caddyllm

import (
	"context"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// A request may go through a second proxy when the first one has failed: from
// handle_errors or handle_response, to another pool. Plain Caddy leaves a body
// unread that it could not send. This policy has read it, and the request that
// the second proxy gets is not the one that the first proxy's attempts were made
// of; what both share are the request's variables. So the body is left there, for
// the second proxy's policy to find.
const bodyVariable = "llm_prefix_body"

// String tells nothing: a placeholder may name any variable.
func (b *body) String() string { return "" }

// leaveBody lets a later proxy of the request have the body. Only a request
// that failed comes to another one.
func (f *flight) leaveBody(ctx context.Context) {
	if f.body != nil && ctx.Value(caddyhttp.VarsCtxKey) != nil {
		caddyhttp.SetVar(ctx, bodyVariable, f.body)
	}
}

// goOn makes the body of what a proxy before read of it, and of what this one
// found. What it can't make whole must not pass for a body.
func (b *body) goOn(ctx context.Context) {
	if ctx.Value(caddyhttp.VarsCtxKey) == nil {
		return
	}
	before, ok := caddyhttp.GetVar(ctx, bodyVariable).(*body)
	if !ok {
		return
	}
	before.mu.Lock()
	defer before.mu.Unlock()
	// No attempt of the proxy before may read on in what this one has begun to read.
	before.attempt++
	nothing := len(b.kept) == 0 && b.rest == nil
	switch {
	case !nothing && (before.whole || b.length != before.length || b.whole && b.length >= 0):
		return // a handler between has put another body in its place
	case before.kept == nil && before.rest != nil && !before.restUsed:
		return // there was no room for any of it
	case before.kept == nil || before.restUsed || before.err != nil:
		b.err, b.whole = errShort, false
		return
	}
	joined := newBuffer(int64(len(before.kept) + len(b.kept)))
	if joined == nil {
		b.err = errShort
		return
	}
	n := copy(joined.b, before.kept)
	n += copy(joined.b[n:], b.kept)
	if b.memory != nil {
		b.memory.reuse()
	}
	b.memory, b.kept = joined, joined.b[:n]
	if b.rest == nil && (nothing || b.err == errShort) && (b.length < 0 || int64(n) == b.length) {
		b.err, b.whole = nil, true
	}
}
