package caddyllm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
)

// open gives r a fresh reader over the whole body. It reports false if that
// can't be done any more: an attempt has used bytes that were not kept, and
// sending the others would be a broken request.
func (b *body) open(r *http.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.landed {
		// The client has left meanwhile. The round trip will say so, and the
		// proxy; no upstream would mean that there is none.
		r.Body, r.GetBody = io.NopCloser(errReader{context.Canceled}), nil
		return true
	}
	if b.restUsed || b.spent || b.err != nil && b.attempt > 0 {
		return false
	}
	b.attempt++
	b.opened++
	switch {
	case b.err != nil:
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(b.kept), errReader{b.err}))
	case b.rest != nil:
		rest := &restReader{body: b, attempt: b.attempt}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(b.kept), rest), rest}
	default:
		b.openWhole(r)
	}
	return true
}

func (b *body) openWhole(r *http.Request) {
	// A length is kinder to the engines' servers than chunks, but chunks are
	// what carries trailers.
	if len(r.Trailer) == 0 {
		r.ContentLength = int64(len(b.kept))
		r.TransferEncoding = nil
	}
	if len(b.kept) == 0 && r.ContentLength == 0 {
		r.Body, r.GetBody = nil, nil
		return
	}
	// Only from a plain bytes.Reader does net/http send a body in one packet with
	// the header.
	r.Body = io.NopCloser(bytes.NewReader(b.kept))
	r.GetBody = b.again
}

// again is the body once more for an attempt whose connection turned out to be
// closed.
func (b *body) again() (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent {
		return nil, errStaleAttempt
	}
	b.opened++
	return io.NopCloser(bytes.NewReader(b.kept)), nil
}

// restReader lets one attempt read what was not kept. Once a later attempt was
// opened it reads nothing more, or two attempts would share the bytes.
type restReader struct {
	body    *body
	attempt int
}

var errStaleAttempt = errors.New("reading a body for an attempt that is over")

func (r *restReader) Read(p []byte) (int, error) {
	r.body.mu.Lock()
	if r.attempt != r.body.attempt {
		r.body.mu.Unlock()
		return 0, errStaleAttempt
	}
	r.body.restUsed = true
	r.body.mu.Unlock()
	// Not under the lock: the client may take its time.
	n, err := r.body.rest.Read(p)
	if err != nil && err != io.EOF {
		r.body.mu.Lock()
		r.body.restErr = err
		r.body.mu.Unlock()
	}
	return n, err
}

// Close passes on only what ends a body that was read from, as the proxy's own
// reader does: the transport closes bodies after failed dials too.
func (r *restReader) Close() error {
	r.body.mu.Lock()
	used := r.body.restUsed && r.attempt == r.body.attempt
	r.body.mu.Unlock()
	if !used {
		return nil
	}
	return r.body.rest.Close()
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }
