package vllmapi

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Entry is what a Server remembers of a request: no prompt and no reply.
type Entry struct {
	Time             time.Time // when the header had come
	Method, Path     string
	ContentLength    int64 // -1 if unknown
	TransferEncoding []string
	BodySHA256       [32]byte // of what was read
	BodyLength       int64    // bytes read
	Model            string

	// Tokens of all prompts and replies; 0 if nothing was generated.
	PromptTokens, CachedTokens, OutputTokens int

	Status  int  // 0 if no answer was begun
	Aborted bool // the client left, or a fault cut the connection
}

// exchange is one request and its answer.
type exchange struct {
	http.ResponseWriter
	r         *http.Request
	entry     Entry
	journal   bool
	sent      int64 // bytes of the answer's body
	anthropic bool  // errors have that API's shape
}

// newExchange begins an exchange; journal is whether anybody will read its
// entry but for the status.
func newExchange(w http.ResponseWriter, r *http.Request, journal bool) *exchange {
	x := &exchange{ResponseWriter: w, r: r, journal: journal}
	x.entry.Time = time.Now()
	if journal {
		x.entry = Entry{
			Time: x.entry.Time, Method: r.Method, Path: r.URL.Path, ContentLength: r.ContentLength,
			TransferEncoding: slices.Clone(r.TransferEncoding), BodySHA256: sha256.Sum256(nil),
		}
	}
	return x
}

func (x *exchange) WriteHeader(status int) {
	if x.entry.Status == 0 {
		x.entry.Status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(b []byte) (int, error) {
	if x.entry.Status == 0 {
		x.entry.Status = http.StatusOK
	}
	n, err := x.ResponseWriter.Write(b)
	x.sent += int64(n)
	return n, err
}

// length is the Content-Length that vLLM would tell: that of a stream is unknown.
func (x *exchange) length() int64 {
	if strings.HasPrefix(x.Header().Get("Content-Type"), "text/event-stream") {
		return 0
	}
	return x.sent
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

func (x *exchange) flush() {
	// A writer that can't flush sends at the end; a client that left is seen
	// by its context.
	_ = http.NewResponseController(x.ResponseWriter).Flush()
}

// abort cuts the connection; what was written before may or may not arrive.
func (x *exchange) abort() {
	x.entry.Aborted = true
	panic(http.ErrAbortHandler)
}

// body reads the whole body. If it can't, it has answered.
//
// Reading to the end is also what makes an http.Server watch the connection,
// so that the request's context ends when the client leaves.
func (x *exchange) body(limit int64) ([]byte, bool) {
	b, err := readAll(http.MaxBytesReader(x.ResponseWriter, x.r.Body, limit), x.r.ContentLength)
	if x.journal {
		x.entry.BodySHA256, x.entry.BodyLength = sha256.Sum256(b), int64(len(b))
	}
	if err == nil {
		return b, true
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		(&apiError{http.StatusRequestEntityTooLarge, "Request Entity Too Large", "The request body is too large.", ""}).write(x)
		return nil, false
	}
	x.entry.Aborted = true
	unreadable.write(x)
	return nil, false
}

// isJSON is vLLM's check of the content type.
func isJSON(r *http.Request) bool {
	media, _, _ := strings.Cut(strings.ToLower(r.Header.Get("Content-Type")), ";")
	return strings.TrimSpace(media) == "application/json"
}

var unsupportedMedia = &apiError{
	http.StatusBadRequest, "Bad Request", "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed", "",
}

// readAll is io.ReadAll with room for what is expected, within reason.
func readAll(r io.Reader, expected int64) ([]byte, error) {
	const most = 1 << 20
	b := bytes.NewBuffer(make([]byte, 0, bytes.MinRead+min(max(expected, 0), most)))
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}
