package scrape

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Fetch asks for a page. It and the body's Read must end when ctx does. The
// caller closes the body; it is nil if err isn't.
type Fetch func(ctx context.Context) (body io.ReadCloser, status int, err error)

// errCoding says that a page is coded in a way that wasn't asked for.
var errCoding = errors.New("page has an unknown content coding")

// maxDrain is how much of an answer that is no page is read so that its
// connection can be used again.
const maxDrain = 64 << 10

// HTTP gets the page at u through rt. It follows one redirect to the same
// scheme, host and port: some releases send /metrics to /metrics/. Any other
// place might be anybody's, and the header may hold a key. The header is asked
// for anew each time, so that a key may be replaced; it may be nil.
func HTTP(rt http.RoundTripper, u *url.URL, header func() http.Header) Fetch {
	return func(ctx context.Context) (io.ReadCloser, int, error) {
		var more http.Header
		if header != nil {
			more = header()
		}
		res, err := get(ctx, rt, u, more)
		if err != nil {
			return nil, 0, err
		}
		if next := hop(u, res); next != nil {
			drain(res.Body)
			if res, err = get(ctx, rt, next, more); err != nil {
				return nil, 0, err
			}
		}
		return decoded(res)
	}
}

func get(ctx context.Context, rt http.RoundTripper, u *url.URL, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("asking for metrics: %w", err)
	}
	req.Header.Set("User-Agent", "caddy-llm-prefix")
	req.Header.Set("Accept", "text/plain;version=0.0.4;q=1,*/*;q=0.1")
	// An engine compresses on the loop that serves its requests.
	req.Header.Set("Accept-Encoding", "identity")
	for name, values := range header {
		if name == "Host" {
			req.Host = values[0]
			continue
		}
		req.Header[name] = values
	}
	return rt.RoundTrip(req)
}

// hop is where a redirect leads, nil if the answer is none that is followed.
func hop(from *url.URL, res *http.Response) *url.URL {
	if !redirects(res.StatusCode) {
		return nil
	}
	to, err := from.Parse(res.Header.Get("Location"))
	if err != nil || to.User != nil || to.Scheme != from.Scheme || hostPort(to) != hostPort(from) {
		return nil
	}
	return to
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, maxDrain)
	_ = body.Close()
}

// decoded unpacks what a server packs though nobody asked it to.
func decoded(res *http.Response) (io.ReadCloser, int, error) {
	if res.Body == nil || res.StatusCode != http.StatusOK {
		return res.Body, res.StatusCode, nil
	}
	switch strings.ToLower(strings.TrimSpace(res.Header.Get("Content-Encoding"))) {
	case "", "identity":
		return res.Body, res.StatusCode, nil
	case "gzip", "x-gzip":
		unpacked, err := gzip.NewReader(res.Body)
		if err != nil {
			_ = res.Body.Close()
			return nil, 0, fmt.Errorf("unpacking metrics: %w", err)
		}
		return packed{unpacked, res.Body}, res.StatusCode, nil
	}
	_ = res.Body.Close()
	return nil, 0, errCoding
}

// packed reads the page and closes what it is read from.
type packed struct {
	io.Reader
	io.Closer
}
