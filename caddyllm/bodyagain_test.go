package caddyllm

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// What a second proxy makes of a body that the first one has read, or begun to.
func TestABodyGoesOnToAnotherProxy(t *testing.T) {
	const text = "0123456789abcdef"
	for _, c := range []struct {
		name   string
		limit  int64 // of what either keeps
		length int64 // as told; -1: chunks
		first  func(b *body, r *http.Request)
		late   bool   // the first proxy's attempt reads on
		put    string // in the body's place between the two
		want   string
		err    bool
	}{
		{name: "read whole", limit: 100, length: 16, want: text},
		{name: "read whole in chunks", limit: 100, length: -1, want: text},
		{name: "read in part", limit: 6, length: 16, want: text},
		{name: "read in part, in chunks", limit: 6, length: -1, want: text},
		{name: "read but for the last byte", limit: 14, length: 16, want: text},
		{name: "used in part", limit: 6, length: 16, first: use, err: true},
		{name: "used in part, in chunks", limit: 6, length: -1, first: use, err: true},
		{name: "answered", limit: 100, length: 16, first: func(b *body, _ *http.Request) { b.spend(); b.land() }, err: true},
		{name: "answered, in chunks", limit: 100, length: -1, first: func(b *body, _ *http.Request) { b.spend(); b.land() }, err: true},
		{name: "replaced between the two", limit: 100, length: 16, put: "another", want: "another"},
		{name: "read in part, and replaced", limit: 6, length: 16, put: "short", want: "short"},
		{name: "read in part, and replaced by more", limit: 6, length: 16, put: "another that is longer", want: "another that is longer"},
		{name: "read in part, in chunks, and replaced", limit: 6, length: -1, put: "short", want: "short"},
		{name: "read in part by one that goes on to read", limit: 4, length: 16, first: linger, late: true, want: text},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.WithValue(t.Context(), caddyhttp.VarsCtxKey, make(map[string]any))
			source := io.NopCloser(strings.NewReader(text))
			request := func() *http.Request {
				r := httptest.NewRequest(http.MethodPost, "/", nil).WithContext(ctx)
				r.Body, r.ContentLength = source, c.length
				return r
			}
			r := request()
			f := &flight{body: readBody(r, c.limit)}
			f.leaveBody(ctx)
			if c.first != nil {
				c.first(f.body, r)
			}
			late := r.Body // that of an attempt of the first proxy
			r = request()
			if c.put != "" {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(c.put)), int64(len(c.put))
			}
			b := readBody(r, c.limit)
			b.goOn(ctx)
			if b.clientGone() {
				t.Error("the client is thought to be gone")
			}
			if !b.open(r) {
				t.Fatal("the body can't be opened")
			}
			if c.late {
				if rest, _ := io.ReadAll(late); len(rest) > 0 {
					t.Errorf("the first proxy goes on to read %q", rest)
				}
			}
			got, err := io.ReadAll(r.Body)
			if (err != nil) != c.err || err == nil && string(got) != c.want {
				t.Errorf("the second proxy sends %q, %v, want %q, error %v", got, err, c.want, c.err)
			}
			b.land()
			f.body.land()
		})
	}
	// A config may name any variable in a log or a header.
	kept := &body{kept: []byte("CANARY")}
	if told := fmt.Sprintf("%v %+v %s", kept, kept, kept); strings.Contains(told, "CANARY") || strings.TrimSpace(told) != "" {
		t.Errorf("a body prints as %q", told)
	}
}

// linger leaves an attempt that reads what was not kept once another proxy has
// begun.
func linger(b *body, r *http.Request) {
	b.open(r)
	_, _ = io.CopyN(io.Discard, r.Body, int64(len(b.kept)))
}

// use has an attempt read of what was not kept.
func use(b *body, r *http.Request) {
	b.open(r)
	_, _ = io.CopyN(io.Discard, r.Body, 8)
}
