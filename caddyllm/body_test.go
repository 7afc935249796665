package caddyllm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func post(t *testing.T, body io.Reader, length int64) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://gateway/v1/chat/completions", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Body, r.ContentLength = io.NopCloser(body), length
	if length < 0 {
		r.TransferEncoding = []string{"chunked"}
	}
	return r
}

func sent(t *testing.T, r *http.Request) (string, error) {
	t.Helper()
	if r.Body == nil {
		return "", nil
	}
	got, err := io.ReadAll(r.Body)
	return string(got), err
}

// Every attempt sends the same bytes, whatever the one before has read of its
// own reader, and a chunked body gets the length that engines like better.
func TestEachAttemptGetsTheWholeBody(t *testing.T) {
	const text = `{"model":"m"}`
	for _, length := range []int64{int64(len(text)), -1} {
		r := post(t, iotest.OneByteReader(strings.NewReader(text)), length)
		b := readBody(r, 1024)
		for attempt := 1; attempt <= 3; attempt++ {
			if !b.open(r) {
				t.Fatalf("length %d, attempt %d: open = false, want true", length, attempt)
			}
			if got, err := sent(t, r); got != text || err != nil {
				t.Errorf("length %d, attempt %d: sent %q, %v; want %q", length, attempt, got, err, text)
			}
			if r.ContentLength != int64(len(text)) || r.TransferEncoding != nil {
				t.Errorf("length %d: goes on as length %d, coding %v", length, r.ContentLength, r.TransferEncoding)
			}
			again, err := r.GetBody()
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := io.ReadAll(again); string(got) != text {
				t.Errorf("GetBody gives %q, want %q", got, text)
			}
		}
	}
}

// Around the limit: what fits is kept whole, a byte more is streamed.
func TestBodiesAroundTheLimit(t *testing.T) {
	const limit = 64
	for _, size := range []int{1, limit - 1, limit, limit + 1, limit + 2, 10 * limit} {
		for _, known := range []bool{true, false} {
			text := strings.Repeat("x", size)
			length := int64(-1)
			if known {
				length = int64(size)
			}
			r := post(t, strings.NewReader(text), length)
			b := readBody(r, limit)
			if b.whole != (size <= limit) {
				t.Errorf("%d bytes: whole = %v", size, b.whole)
			}
			if !b.open(r) {
				t.Fatalf("%d bytes: open = false", size)
			}
			if got, err := sent(t, r); got != text || err != nil {
				t.Errorf("%d bytes: sent %d bytes, %v", size, len(got), err)
			}
			if size > limit && r.ContentLength != length {
				t.Errorf("%d bytes: length became %d", size, r.ContentLength)
			}
		}
	}
}

// FC-76: a body beyond the limit may be sent again as long as only the kept
// bytes were read (a refused connection), and never in part.
func TestFC76PartOfABodyIsNeverSentTwice(t *testing.T) {
	text := strings.Repeat("a", 64) + strings.Repeat("b", 64)
	r := post(t, strings.NewReader(text), int64(len(text)))
	b := readBody(r, 64)

	if !b.open(r) {
		t.Fatal("first attempt: open = false")
	}
	first := r.Body
	if err := first.Close(); err != nil { // as the transport does after a failed dial
		t.Fatal(err)
	}
	if !b.open(r) {
		t.Fatal("second attempt, nothing used: open = false")
	}
	if _, err := io.ReadAll(first); !errors.Is(err, errStaleAttempt) {
		t.Errorf("the first attempt's reader read on: %v", err)
	}
	if got, err := sent(t, r); got != text || err != nil {
		t.Errorf("second attempt sent %d bytes, %v; want %d", len(got), err, len(text))
	}
	if b.open(r) {
		t.Error("third attempt after the rest was used: open = true, want false")
	}
}

// FC-79 (d): a client that leaves while its body is read is told from a
// handler in front that refuses the body.
func TestWhoEndedTheBody(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		gone bool
	}{
		{"client left", io.ErrUnexpectedEOF, true},
		{"request_body max_size", caddyhttp.Error(http.StatusRequestEntityTooLarge, errors.New("too large")), false},
		{"read timeout", iotest.ErrTimeout, true}, // a plain error, without Timeout
		{"deadline", deadlineError{}, false},
	} {
		r := post(t, io.MultiReader(strings.NewReader("{"), iotest.ErrReader(c.err)), 100)
		b := readBody(r, 1024)
		if got := b.clientGone(); got != c.gone {
			t.Errorf("%s: clientGone = %v, want %v", c.name, got, c.gone)
		}
		if !b.open(r) {
			t.Fatalf("%s: open = false", c.name)
		}
		if got, err := sent(t, r); got != "{" || !errors.Is(err, c.err) {
			t.Errorf("%s: sent %q, %v; want the byte and the error", c.name, got, err)
		}
		if b.open(r) {
			t.Errorf("%s: a second attempt would send a part", c.name)
		}
	}
}

// A body that a handler in front read, in part or as a whole, is not what is
// left of it: an engine would take that for a prompt.
func TestWhatIsLeftOfABodyIsNoBody(t *testing.T) {
	for _, left := range []string{"", "half of it"} {
		r := post(t, strings.NewReader(left), 100)
		b := readBody(r, 1024)
		if b.whole || b.clientGone() || !errors.Is(b.err, errShort) {
			t.Errorf("%d bytes of 100 are whole: %v, by a client that left: %v, %v", len(left), b.whole, b.clientGone(), b.err)
		}
		if !b.open(r) || r.ContentLength != 100 {
			t.Fatalf("it is sent with length %d, want the 100 that it had", r.ContentLength)
		}
		if got, err := sent(t, r); got != left || !errors.Is(err, errShort) {
			t.Errorf("sent %q, %v; want an error", got, err)
		}
	}
}

type deadlineError struct{}

func (deadlineError) Error() string { return "deadline" }
func (deadlineError) Timeout() bool { return true }

// Trailers travel in chunks only.
func TestTrailersKeepTheirChunks(t *testing.T) {
	r := post(t, strings.NewReader("{}"), -1)
	r.Trailer = http.Header{"X-Sum": {"1"}}
	b := readBody(r, 1024)
	b.open(r)
	if r.ContentLength != -1 || r.TransferEncoding == nil {
		t.Errorf("length %d, coding %v; want chunks", r.ContentLength, r.TransferEncoding)
	}
}

func TestNoBody(t *testing.T) {
	r := post(t, nil, 0)
	for _, none := range []io.ReadCloser{nil, http.NoBody} {
		r.Body = none
		if b := readBody(r, 10); b != nil {
			t.Errorf("readBody(%v) = %v, want nil", none, b)
		}
	}
	empty := post(t, new(bytes.Buffer), -1)
	b := readBody(empty, 10)
	if !b.whole || !b.open(empty) || empty.Body != nil {
		t.Errorf("an empty chunked body: whole %v, body %v; want none", b.whole, empty.Body)
	}
}

// A length is a claim: memory follows the bytes that come.
func TestAClaimedLengthGetsNoMemory(t *testing.T) {
	r := post(t, strings.NewReader("{}"), 100<<20)
	b := readBody(r, 200<<20)
	if got := cap(b.kept); got > 2*trustBody {
		t.Errorf("two bytes of a claimed 100 MiB hold %d bytes", got)
	}
}

// A client that leaves while an attempt is chosen is told of as one that left:
// the attempt goes on, to fail with it, and isn't taken for one without a body.
func TestABodyOfAClientThatLeftStillOpens(t *testing.T) {
	r := post(t, strings.NewReader("{}"), 2)
	b := readBody(r, 1024)
	if !b.open(r) {
		t.Fatal("the first attempt has no body")
	}
	b.land()
	if !b.open(r) {
		t.Fatal("a client that left makes an attempt impossible")
	}
	if got, err := sent(t, r); got != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("sent %q, %v, want nothing and the reason", got, err)
	}
}

// Who broke the upload is the client, also behind what is kept.
func TestABrokenUploadIsNoUpstreams(t *testing.T) {
	torn := errors.New("torn")
	for name, c := range map[string]struct {
		body  io.Reader
		limit int64
		broke bool
	}{
		"whole":           {strings.NewReader("abcdef"), 10, false},
		"behind the rest": {strings.NewReader("abcdef"), 3, false},
		"torn at once":    {io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(torn)), 10, true},
		"torn later":      {io.MultiReader(strings.NewReader("abcdef"), iotest.ErrReader(torn)), 3, true},
	} {
		r := post(t, c.body, -1)
		b := readBody(r, c.limit)
		b.open(r)
		_, err := sent(t, r)
		if b.broke() != c.broke || (err != nil) != c.broke {
			t.Errorf("%s: broke = %v, sending it %v; want %v", name, b.broke(), err, c.broke)
		}
	}
}
