package caddyllm

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// body is what was read of a request's body, and what is left of it. The proxy
// asks Select once per attempt and sends whatever r.Body then gives, so every
// attempt gets a reader of its own that starts at the first byte. A reader is
// never rewound instead: the transport may still be reading the old one when
// the round trip has long returned.
type body struct {
	length int64 // as the request told it; -1: it didn't
	whole  bool  // kept is all of it
	tight  bool  // there was no room to keep more of it
	err    error // what reading it ended with, after kept

	rest io.ReadCloser // what follows kept, where there is neither an end nor an error yet

	mu       sync.Mutex // guards the rest of the fields
	kept     []byte     // the first bytes of the body
	memory   *buffer    // of kept; nil once it was given up
	attempt  int        // the attempt whose reader may read from rest
	restUsed bool       // something was read from rest: kept and rest no longer make the body
	opened   int        // readers of kept
	written  int        // of these, what net/http is done with
	torn     bool       // one was not read to its end
	spent    bool       // no attempt will follow
	landed   bool       // the request is over, and no answer had begun
	restErr  error      // what reading rest ended with, other than its end
}

// trustBody bounds what is allocated on a client's word, bytes: hundreds of
// uploads may begin that never go on. Longer bodies grow with what has come, in
// fewer steps where a length says where that will end.
const (
	trustBody   = 64 << 10
	growClaimed = 4
	growUnknown = 2
)

// readBody reads the first limit bytes of r's body, through its end if it ends
// there: only then does net/http publish trailers and watch for the client to
// leave. Where bodies have no room left it reads less. It returns nil where
// there is no body.
func readBody(r *http.Request, limit int64) *body {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	b := &body{length: r.ContentLength}
	// One byte more than the limit tells a body of just that length from a
	// longer one, and one more than the length finds the end without growing.
	most, size, grow := limit+1, min(4096, limit+1), int64(growUnknown)
	if r.ContentLength >= 0 {
		most = min(r.ContentLength, limit) + 1
		size, grow = min(most, trustBody), growClaimed
	}
	if b.memory = newBuffer(size); b.memory == nil {
		b.rest, b.tight = r.Body, true
		return b
	}
	for {
		buf := b.memory.b[:min(int64(len(b.memory.b)), limit+1)]
		if len(b.kept) == len(buf) {
			// A length that was too short is no bound.
			if int64(len(buf)) >= most {
				most = limit + 1
			}
			next := grow * int64(len(buf))
			if next > most/2 {
				next = most // not once more for the last bytes
			}
			grown := newBuffer(next)
			if grown == nil {
				b.rest, b.tight = r.Body, true
				return b
			}
			b.kept = grown.b[:copy(grown.b, b.kept)]
			b.memory.reuse()
			b.memory = grown
			continue
		}
		n, err := r.Body.Read(buf[len(b.kept):])
		b.kept = buf[:len(b.kept)+n]
		switch {
		case int64(len(b.kept)) > limit:
			// An error that came with the byte will come again.
			b.rest = r.Body
			return b
		case err == io.EOF && int64(len(b.kept)) < r.ContentLength:
			b.err = errShort
			return b
		case err == io.EOF:
			b.whole = true
			return b
		case err != nil:
			b.err = err
			return b
		}
	}
}

// errShort is of a body that ends before its length says: something in front of
// the proxy read it, and what is left must not pass for all of it. The transport
// reports it as without this policy.
var errShort = errors.New("reading a body: it is shorter than its length, as if a handler before had read it")

// text is what is kept of the body.
func (b *body) text() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept
}

// spend tells that the answer has begun, so that no attempt will follow: the
// body is kept no longer than the attempt under way needs it.
func (b *body) spend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = true
	b.settle(false)
}

// land tells that the request is over.
func (b *body) land() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.landed = b.landed || !b.spent
	b.settle(true)
}

// broke reports whether reading the client's body failed: then the round trip
// failed with it, and no upstream is to blame.
func (b *body) broke() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil || b.restErr != nil
}

// wrote is told by net/http that it has written a request, or failed to: it
// reads the attempt's body no more.
func (b *body) wrote(info httptrace.WroteRequestInfo) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.written++
	b.torn = b.torn || info.Err != nil
	b.settle(false)
}

// settle gives the memory up where it is no longer needed. It may be used again
// only where it was read once and to its end, by an attempt that was answered:
// then no reader of it is left that could find another client's bytes in it.
func (b *body) settle(landed bool) {
	if b.memory == nil || !landed && !(b.spent && b.written >= b.opened) {
		return
	}
	if b.whole && b.spent && b.opened == 1 && b.written > 0 && !b.torn {
		b.memory.reuse()
	} else {
		b.memory.leave()
	}
	b.memory, b.kept, b.spent = nil, nil, true
}

// clientGone reports whether the body ended in a way that only the client's
// leaving can explain. A handler in front that refuses the body (such as
// request_body with max_size) says so with a HandlerError, and a deadline is
// the server's; both are the transport's to report, as without this policy.
func (b *body) clientGone() bool {
	if b.err == nil {
		return false
	}
	var refused caddyhttp.HandlerError
	var timeout interface{ Timeout() bool }
	return !errors.Is(b.err, errShort) && !errors.As(b.err, &refused) && !(errors.As(b.err, &timeout) && timeout.Timeout())
}
