package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Bounds of what is kept and read of a response.
const (
	maxDetail   = 300      // bytes of an error's text in a report
	maxRefusal  = 64 << 10 // bytes read of a response other than 200
	maxLine     = 8 << 10  // bytes of an event kept to look for an error in it
	maxTrailing = 64 << 10 // bytes read after [DONE] so that the connection can serve again
)

// exchange is what the wire showed of one request. The SDK hides some of it:
// a stream that ends early looks to its users like one that ended well.
//
// It belongs to the goroutine of its request.
type exchange struct {
	status int    // zero if no response came
	body   []byte // the beginning of a response other than 200
	done   bool   // "data: [DONE]" was seen
	events int    // "data:" lines seen
	failed []byte // the beginning of an event with an error object
	err    error  // reading the body failed

	header   string // Options.UpstreamHeader
	upstream string // what it told
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// watcher fills in the exchange that a request's context carries.
type watcher struct{ *http.Transport }

// newTransport keeps a connection for each conversation, as browsers and SDKs
// of as many users would.
func newTransport(connections int) watcher {
	return watcher{&http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        connections,
		MaxIdleConnsPerHost: connections,
		IdleConnTimeout:     30 * time.Second,
	}}
}

func (w watcher) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := w.Transport.RoundTrip(req)
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if err != nil || !ok {
		return res, err
	}
	x.status = res.StatusCode
	if x.header != "" {
		x.upstream = upstreamIn(res.Header.Get(x.header))
	}
	if res.StatusCode == http.StatusOK {
		res.Body = &watched{ReadCloser: res.Body, x: x}
		return res, nil
	}
	refusal, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	_ = res.Body.Close()
	x.body = refusal[:min(len(refusal), 4*maxDetail)]
	res.Body = io.NopCloser(bytes.NewReader(refusal))
	res.ContentLength = int64(len(refusal))
	return res, nil
}

// watched reads a body line by line beside its reader.
type watched struct {
	io.ReadCloser
	x    *exchange
	line []byte // the line under way, its first maxLine bytes
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.scan(p[:n])
	if err != nil {
		w.see(w.line)
		w.line = nil
		if !errors.Is(err, io.EOF) {
			w.x.err = err
		}
	}
	return n, err
}

// Close reads what follows [DONE], a few bytes of framing as a rule: closing
// earlier would cost the connection and look to a proxy like a client that left.
func (w *watched) Close() error {
	if w.x.done {
		_, _ = io.CopyN(io.Discard, w.ReadCloser, maxTrailing)
	}
	return w.ReadCloser.Close()
}

func (w *watched) scan(p []byte) {
	for len(p) > 0 {
		text, rest, ended := bytes.Cut(p, []byte("\n"))
		w.line = append(w.line, text[:min(len(text), max(0, maxLine-len(w.line)))]...)
		if !ended {
			return
		}
		w.see(w.line)
		w.line = w.line[:0]
		p = rest
	}
}

// see looks at one line of a stream.
func (w *watched) see(line []byte) {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return
	}
	w.x.events++
	data = bytes.TrimSpace(data)
	if bytes.Equal(data, []byte("[DONE]")) {
		w.x.done = true
		return
	}
	if w.x.failed != nil || !bytes.Contains(data, []byte(`"error"`)) {
		return
	}
	var event struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &event) == nil && len(event.Error) > 0 && !bytes.Equal(event.Error, []byte("null")) {
		w.x.failed = bytes.Clone(event.Error[:min(len(event.Error), 4*maxDetail)])
	}
}

// upstreamIn is the upstream that a header's value names.
func upstreamIn(value string) string {
	value, _, _ = strings.Cut(value, ";")
	return strings.TrimPrefix(strings.TrimSpace(value), "upstream=")
}
