package caddyllm

import (
	"math/bits"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// room bounds what all requests of the process together keep of their bodies.
type room struct {
	bound atomic.Int64 // bytes, 0 until the first body comes
	taken atomic.Int64
}

// bodiesRoom is what a body is kept in from its reading until its answer begins,
// or the request ends, and what it is decoded into.
var bodiesRoom room

const (
	// maxBodies is the bound where the process has no memory limit, bytes: 128
	// bodies of the default max_body at once.
	maxBodies = 1 << 30
	// bodiesShare is the part of GOMEMLIMIT that the bound is else, if less.
	bodiesShare = 4
)

// limit is the bound. Caddy sets the process's memory limit, by that of its
// container, when it starts: later than packages begin.
func (r *room) limit() int64 {
	if bound := r.bound.Load(); bound > 0 {
		return bound
	}
	r.bound.Store(max(min(maxBodies, debug.SetMemoryLimit(-1)/bodiesShare), 1))
	return r.bound.Load()
}

// take reports whether there are n bytes left, and takes them.
func (r *room) take(n int) bool {
	if r.taken.Add(int64(n)) > r.limit() {
		r.taken.Add(-int64(n))
		return false
	}
	return true
}

func (r *room) give(n int) { r.taken.Add(-int64(n)) }

// buffers are reused, by size: a prompt for each request is most of what would
// be garbage otherwise.
var buffers [bufferSizes]sync.Pool

const (
	bufferMin   = 4 << 10 // bytes, of the smallest size; each is twice the one before
	bufferSizes = 9       // to 1 MiB
)

// buffer is memory for a body. The bytes behind what was read into it are of
// whomever had it before.
type buffer struct{ b []byte }

// newBuffer returns a buffer of at least size bytes, or nil where bodies have no
// room left.
func newBuffer(size int64) *buffer {
	class := bits.Len64(uint64(max(size-1, 0)) / bufferMin)
	full := int(size)
	if class < bufferSizes {
		full = bufferMin << class
	}
	if !bodiesRoom.take(full) {
		return nil
	}
	if class < bufferSizes {
		if b, ok := buffers[class].Get().(*buffer); ok {
			return b
		}
	}
	return &buffer{make([]byte, full)}
}

// leave gives up the buffer's room, and leaves its memory to the garbage
// collector: somebody may still read it.
func (b *buffer) leave() { bodiesRoom.give(len(b.b)) }

// reuse gives up the buffer, which nobody reads any more.
func (b *buffer) reuse() {
	b.leave()
	if class := bits.Len(uint(len(b.b)-1) / bufferMin); class < bufferSizes {
		buffers[class].Put(b)
	}
}
