package scrape

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/enginemetrics"
)

// script is a transport that answers by URL, and remembers what was asked.
type script struct {
	answers map[string]*http.Response
	asked   []*http.Request
	open    int
}

type scriptedBody struct {
	io.Reader
	s *script
}

// Close implements io.Closer.
func (b scriptedBody) Close() error { b.s.open--; return nil }

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, req)
	res := s.answers[req.URL.String()]
	if res == nil {
		res = &http.Response{StatusCode: 404}
	}
	whole := *res
	if whole.Header == nil {
		whole.Header = http.Header{}
	}
	if whole.Body == nil {
		whole.Body = http.NoBody
	}
	s.open++
	whole.Body = scriptedBody{whole.Body, s}
	return &whole, nil
}

func ok(text string, header ...string) *http.Response {
	res := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}
	for i := 0; i < len(header); i += 2 {
		res.Header.Set(header[i], header[i+1])
	}
	return res
}

func to(status int, location string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Location": {location}}}
}

func (s *script) get(t *testing.T, at string, header func() http.Header) (string, int, error) {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	body, status, err := HTTP(s, u, header)(t.Context())
	if err != nil {
		if body != nil {
			t.Error("a body comes with an error")
		}
		return "", status, err
	}
	text, err := io.ReadAll(body)
	body.Close()
	if s.open != 0 {
		t.Errorf("%d bodies are left open", s.open)
	}
	return string(text), status, err
}

// FC-62: a redirect is followed once, to the same scheme, host and port, and
// nowhere else: there is no telling who is there.
func TestFC62Redirects(t *testing.T) {
	for _, c := range []struct {
		name, from, location string
		status               int
		followed             bool
	}{
		{"a path", "http://gpu1:8000/metrics", "/metrics/", 307, true},
		{"a relative path", "http://gpu1:8000/metrics", "metrics/", 308, true},
		{"the same address", "http://gpu1:8000/metrics", "http://gpu1:8000/metrics/", 307, true},
		{"the same address in other letters", "http://GPU1:80/metrics", "http://gpu1/metrics/", 301, true},
		{"a query", "http://gpu1:8000/metrics?a=b", "/metrics/?a=b", 302, true},
		{"IPv6", "http://[::1]:8000/metrics", "http://[::1]:8000/metrics/", 303, true},
		{"an internal name", "http://gpu1:8000/metrics", "http://vllm.internal/metrics/", 307, false},
		{"the same name on port 80", "http://gpu1:8000/metrics", "http://gpu1/metrics/", 307, false},
		{"another scheme", "https://gpu1:8443/metrics", "http://gpu1:8443/metrics/", 307, false},
		{"no scheme", "http://gpu1:8000/metrics", "//gpu2:8000/metrics/", 307, false},
		{"a user", "http://gpu1:8000/metrics", "http://u:p@gpu1:8000/metrics/", 307, false},
		{"a metadata service", "http://gpu1:8000/metrics", "http://169.254.169.254/metrics/", 307, false},
		{"no URL", "http://gpu1:8000/metrics", "http://[", 307, false},
		{"not a redirect", "http://gpu1:8000/metrics", "/metrics/", 300, false},
	} {
		s := &script{answers: map[string]*http.Response{c.from: to(c.status, c.location)}}
		for _, at := range []string{"http://gpu1:8000/metrics/", "http://gpu1/metrics/", "http://gpu1:8000/metrics/?a=b", "http://[::1]:8000/metrics/"} {
			s.answers[at] = ok(page)
		}
		text, status, err := s.get(t, c.from, func() http.Header { return http.Header{"Authorization": {"Bearer K"}} })
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if followed := status == 200 && text == page; followed != c.followed {
			t.Errorf("%s: status %d, page %q, want it followed: %v", c.name, status, text, c.followed)
		}
		want := 1
		if c.followed {
			want = 2
		} else if status != c.status {
			t.Errorf("%s: status %d, want %d", c.name, status, c.status)
		}
		if len(s.asked) != want {
			t.Errorf("%s: %d requests, want %d", c.name, len(s.asked), want)
		}
	}
	// One hop only.
	s := &script{answers: map[string]*http.Response{
		"http://gpu1:8000/metrics": to(307, "/a"), "http://gpu1:8000/a": to(307, "/b"), "http://gpu1:8000/b": ok(page),
	}}
	if _, status, _ := s.get(t, "http://gpu1:8000/metrics", nil); status != 307 || len(s.asked) != 2 {
		t.Errorf("a second redirect comes to status %d after %d requests, want 307 after 2", status, len(s.asked))
	}
}

func TestHeaders(t *testing.T) {
	key := "K1"
	s := &script{answers: map[string]*http.Response{"http://gpu1:8000/metrics": ok(page)}}
	u, _ := url.Parse("http://gpu1:8000/metrics")
	f := HTTP(s, u, func() http.Header { return http.Header{"Authorization": {"Bearer " + key}, "Host": {"metrics.local"}} })
	for _, k := range []string{"K1", "K2"} { // the key is replaced
		key = k
		body, _, err := f(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		body.Close()
		req := s.asked[len(s.asked)-1]
		if req.Header.Get("Authorization") != "Bearer "+k || req.Host != "metrics.local" {
			t.Errorf("asked with %q of %q", req.Header, req.Host)
		}
		if req.Method != http.MethodGet || req.Header.Get("Accept-Encoding") != "identity" || req.Header.Get("Accept") == "" {
			t.Errorf("asked by %s with %q, want a GET that makes the engine no work", req.Method, req.Header)
		}
	}
}

// Pages that are packed though nobody asked for it are read, and bounded by
// what they unpack to.
func TestPackedPages(t *testing.T) {
	pack := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, text)
		_ = w.Close()
		return b.String()
	}
	const at = "http://gpu1:8000/metrics"
	get := func(res *http.Response) (string, int, error) {
		t.Helper()
		return (&script{answers: map[string]*http.Response{at: res}}).get(t, at, nil)
	}
	for _, coding := range []string{"gzip", "GZIP", " x-gzip"} {
		if text, _, err := get(ok(pack(page), "Content-Encoding", coding)); err != nil || text != page {
			t.Errorf("%s: %q, %v, want the page", coding, text, err)
		}
	}
	if text, _, err := get(ok(page, "Content-Encoding", "identity")); err != nil || text != page {
		t.Errorf("identity: %q, %v, want the page", text, err)
	}
	for name, res := range map[string]*http.Response{
		"br":          ok("\x8b", "Content-Encoding", "br"),
		"not gzip":    ok(page, "Content-Encoding", "gzip"),
		"cut off":     ok(pack(page)[:20], "Content-Encoding", "gzip"),
		"bad content": ok(pack(page)[:12]+"\xff\xff\xff\xff", "Content-Encoding", "gzip"),
	} {
		if text, _, err := get(res); err == nil {
			t.Errorf("%s: %q and no error", name, text)
		}
	}
	bomb := ok(pack(strings.Repeat(page, 100_000)), "Content-Encoding", "gzip")
	body, _, err := HTTP(&script{answers: map[string]*http.Response{at: bomb}}, mustParse(t, at), nil)(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := enginemetrics.Parse(body, 1<<20); !errors.Is(err, enginemetrics.ErrTooLarge) {
		t.Errorf("a page of some KiB that unpacks to MiB: %v, want %v", err, enginemetrics.ErrTooLarge)
	}
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
