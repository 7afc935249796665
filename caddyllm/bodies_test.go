package caddyllm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http/httptrace"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
)

// roomOf gives bodies a room of their own for a test.
func roomOf(t *testing.T, bound int64) {
	t.Helper()
	before, others := bodiesRoom.bound.Swap(bound), bodiesRoom.taken.Swap(0)
	t.Cleanup(func() {
		bodiesRoom.bound.Store(before)
		if taken := bodiesRoom.taken.Swap(others); taken != 0 {
			t.Errorf("%d bytes are still taken", taken)
		}
	})
}

// Caddy sets the memory limit when it starts, when this package has long begun.
func TestBoundOfAllBodiesFollowsTheMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for limit, want := range map[int64]int64{math.MaxInt64: maxBodies, 1 << 30: 1 << 28} {
		var r room
		debug.SetMemoryLimit(limit)
		if got := r.limit(); got != want {
			t.Errorf("with a memory limit of %d bodies take %d, want %d", limit, got, want)
		}
	}
}

// A body is kept as long as it may be sent again, and no longer: until the
// answer begins and net/http has written the request.
func TestBodyIsFreedWhenTheAnswerBegins(t *testing.T) {
	const text = `{"prompt":"x"}`
	done := httptrace.WroteRequestInfo{}
	for _, c := range []struct {
		name  string
		steps func(b *body)
	}{
		{"written, then answered", func(b *body) { b.wrote(done); b.spend() }},
		{"answered before it was written", func(b *body) { b.spend(); b.wrote(done) }},
		{"written in part", func(b *body) { b.wrote(httptrace.WroteRequestInfo{Err: io.ErrClosedPipe}); b.spend() }},
		{"the request ends first", func(b *body) { b.land() }},
		{"ends twice", func(b *body) { b.wrote(done); b.spend(); b.land(); b.land() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			roomOf(t, 1<<20)
			r := post(t, strings.NewReader(text), int64(len(text)))
			b := readBody(r, 1024)
			if !b.open(r) || bodiesRoom.taken.Load() == 0 {
				t.Fatal("a body to be sent takes no room")
			}
			got, err := sent(t, r)
			if got != text || err != nil {
				t.Fatalf("sent %q, %v", got, err)
			}
			c.steps(b)
			if b.text() != nil || bodiesRoom.taken.Load() != 0 {
				t.Errorf("%d bytes are still kept", bodiesRoom.taken.Load())
			}
			if _, err := r.GetBody(); !errors.Is(err, errStaleAttempt) {
				t.Errorf("GetBody of a body that is gone = %v", err)
			}
			if b.open(r) {
				if got, err := sent(t, r); got != "" || !errors.Is(err, context.Canceled) || !b.landed {
					t.Error("a body that is gone can be sent again")
				}
			}
		})
	}
}

// While an attempt may still read a body its memory is nobody else's: each of
// these leaves it to the garbage collector.
func TestMemoryOfABodyInUseIsNotReused(t *testing.T) {
	text := strings.Repeat("mine ", 100)
	done := httptrace.WroteRequestInfo{}
	for _, c := range []struct {
		name  string
		steps func(b *body)
	}{
		{"answered, never written", func(b *body) { b.spend(); b.land() }},
		{"written in part", func(b *body) { b.wrote(httptrace.WroteRequestInfo{Err: io.ErrClosedPipe}); b.spend() }},
		{"sent twice", func(b *body) { _, _ = b.again(); b.wrote(done); b.wrote(done); b.spend() }},
		{"the client left", func(b *body) { b.wrote(done); b.land() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			roomOf(t, 1<<30)
			r := post(t, strings.NewReader(text), int64(len(text)))
			b := readBody(r, 1024)
			if !b.open(r) {
				t.Fatal("open = false")
			}
			reader := r.Body
			c.steps(b)
			// Whoever comes next takes all that is there to be reused.
			for range 100 {
				other := readBody(post(t, strings.NewReader(strings.Repeat("yours ", 80)), -1), 1024)
				defer other.land()
			}
			if got, _ := io.ReadAll(reader); string(got) != text {
				t.Errorf("the attempt reads %q", got)
			}
		})
	}
}

// Beyond the bound of all bodies a request is looked at less and goes on
// unchanged.
func TestBodiesBeyondTheBoundGoOnUnkept(t *testing.T) {
	roomOf(t, 100<<10)
	text := strings.Repeat("0123456789", 2000)
	var all []*body
	kept, tight := 0, 0
	for range 20 {
		r := post(t, inPieces(text), -1)
		b := readBody(r, 1<<20)
		all = append(all, b)
		if !b.open(r) {
			t.Fatal("open = false")
		}
		if b.tight {
			tight++
			if b.whole {
				t.Error("a body without room is kept whole")
			}
		} else {
			kept++
		}
		if got, err := sent(t, r); got != text || err != nil {
			t.Fatalf("sent %d bytes, %v; want %d", len(got), err, len(text))
		}
		if taken := bodiesRoom.taken.Load(); taken > bodiesRoom.limit() {
			t.Fatalf("bodies take %d bytes", taken)
		}
	}
	if kept == 0 || tight == 0 {
		t.Errorf("%d bodies are kept and %d are not", kept, tight)
	}
	for _, b := range all {
		b.land()
	}
}

// What a body is decoded to takes room as well, as long as it is read.
func TestDecodedBodiesTakeRoom(t *testing.T) {
	p, _ := brokenPolicy(t)
	coded := encode(t, "gzip", []byte(`{"model":"m","messages":[{"role":"user","content":"hello"}]}`))
	for bound, want := range map[int64]string{1 << 20: "", bufferMin + minText - 1: whyMemory} {
		roomOf(t, bound)
		r := post(t, bytes.NewReader(coded), int64(len(coded)))
		f := &flight{Context: r.Context(), policy: p, kind: prompt.Chat, coded: []string{"gzip"}, body: readBody(r, 1<<20)}
		kept := bodiesRoom.taken.Load()
		var s prompt.Scanner
		if _, _, why := f.read(&s, r); why != want {
			t.Errorf("within %d bytes a coded body is read with %q, want %q", bound, why, want)
		}
		if taken := bodiesRoom.taken.Load(); taken != kept {
			t.Errorf("a decoded body leaves %d bytes taken", taken-kept)
		}
		f.body.land()
	}
}

// inPieces gives text in pieces, as a network does.
func inPieces(text string) io.Reader {
	return io.MultiReader(strings.NewReader(text[:len(text)/2]), strings.NewReader(text[len(text)/2:]))
}

// Bodies that come one after another share memory. Not always: a pool may drop
// what it is given, and does so on purpose where races are looked for.
func TestBodiesReuseMemory(t *testing.T) {
	roomOf(t, 1<<30)
	text := strings.Repeat("x", 32<<10)
	var last *byte
	reused := 0
	for range 100 {
		r := post(t, strings.NewReader(text), int64(len(text)))
		b := readBody(r, 1<<20)
		if first := &b.kept[0]; first == last {
			reused++
		} else {
			last = first
		}
		b.open(r)
		_, _ = io.Copy(io.Discard, r.Body)
		b.wrote(httptrace.WroteRequestInfo{})
		b.spend()
	}
	if reused < 25 {
		t.Errorf("%d of 100 bodies are read into the memory of the one before", reused)
	}
}
