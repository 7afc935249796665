package caddyllm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// newStatus makes a handler as Caddy would, without Caddy.
func newStatus(t *testing.T, state string) *LLMStatus {
	t.Helper()
	s := &LLMStatus{State: state}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	t.Cleanup(cancel)
	if err := s.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// visit asks the handler for a path that was stripped of its prefix, as
// handle_path does.
func visit(t *testing.T, s *LLMStatus, method, original, stripped string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequest(method, original, nil)
	before := *req
	before.URL = &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath}
	req = req.WithContext(context.WithValue(req.Context(), caddyhttp.OriginalRequestCtxKey, before))
	req.URL.Path = stripped
	w := httptest.NewRecorder()
	err := s.ServeHTTP(w, req, nil)
	var refused caddyhttp.HandlerError
	switch {
	case errors.As(err, &refused):
		w.Code = refused.StatusCode
	case err != nil:
		t.Fatalf("%s %s: %v", method, original, err)
	}
	return w
}

func TestStatusPage(t *testing.T) {
	s := newStatus(t, "")
	for _, c := range []struct {
		method, original, stripped string
		status                     int
		kind, location             string
	}{
		{"GET", "/llm/", "/", 200, "text/html; charset=utf-8", ""},
		{"GET", "/", "/", 200, "text/html; charset=utf-8", ""},
		{"GET", "/a/llm/index.html", "/index.html", 200, "text/html; charset=utf-8", ""},
		{"GET", "/llm/status.css", "/llm/status.css", 200, "text/css; charset=utf-8", ""}, // a matcher strips nothing
		{"HEAD", "/llm/status.js", "/status.js", 200, "text/javascript; charset=utf-8", ""},
		{"GET", "/llm/icon.svg", "/icon.svg", 200, "image/svg+xml", ""},
		{"GET", "/llm/state.json", "/state.json", 200, "application/json", ""},
		{"HEAD", "/llm/state.json", "/state.json", 200, "application/json", ""},
		{"HEAD", "/llm/events", "/events", 200, "text/event-stream", ""},
		// Without the slash the relative links would lead elsewhere.
		{"GET", "/llm", "/", 308, "", "./llm/"},
		{"GET", "/a/l%20lm", "", 308, "", "./l%20lm/"},
		{"GET", "/llm/other", "/other", 404, "", ""},
		{"GET", "/llm/status/index.go", "/status/index.go", 404, "", ""},
		{"GET", "/llm/..%2Fstatus.go", "/../status.go", 404, "", ""},
		{"POST", "/llm/", "/", 405, "", ""},
		{"DELETE", "/llm/state.json", "/state.json", 405, "", ""},
	} {
		w := visit(t, s, c.method, c.original, c.stripped)
		if w.Code != c.status || c.status == 200 && w.Header().Get("Content-Type") != c.kind || w.Header().Get("Location") != c.location {
			t.Errorf("%s %s: %d %s %q, want %d %s %q", c.method, c.original, w.Code,
				w.Header().Get("Content-Type"), w.Header().Get("Location"), c.status, c.kind, c.location)
		}
		if c.method == "HEAD" && w.Body.Len() > 0 {
			t.Errorf("HEAD %s has a body", c.original)
		}
		if w.Header().Get("Content-Security-Policy") != contentPolicy || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s: header is %v", c.method, c.original, w.Header())
		}
	}
	page := visit(t, s, "GET", "/", "/")
	again := httptest.NewRequest("GET", "/", nil)
	again.Header.Set("If-None-Match", page.Header().Get("Etag"))
	w := httptest.NewRecorder()
	if err := s.ServeHTTP(w, again, nil); err != nil || w.Code != http.StatusNotModified {
		t.Errorf("the page asked for again: %d, %v, want 304", w.Code, err)
	}
}

// The page names only what stands beside it, so that it works below any path
// and offline, and has nothing inline that its policy would forbid.
func TestStatusPageNeedsNothingFromElsewhere(t *testing.T) {
	links := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	inline := regexp.MustCompile(`<script>|<style|\sstyle=|\son\w+=|javascript:|innerHTML|@import|url\(`)
	for name, a := range assets {
		if a.kind == "" {
			t.Errorf("%s has no media type", name)
		}
		text := strings.ReplaceAll(string(a.text), "http://www.w3.org/2000/svg", "")
		if m := inline.FindString(text); m != "" {
			t.Errorf("%s has %q", name, m)
		}
		if strings.Contains(text, "://") || strings.Contains(text, `"//`) {
			t.Errorf("%s names another host", name)
		}
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			if _, ok := assets[m[1]]; !ok && m[1] != "state.json" && !strings.HasPrefix(m[1], "#") {
				t.Errorf("%s links to %s, which isn't there", name, m[1])
			}
		}
	}
}

func TestStatusOfOneState(t *testing.T) {
	newLookout(t, LLMPrefix{State: "one"}, "a:1")
	newLookout(t, LLMPrefix{State: "two"}, "b:1")
	newLookout(t, LLMPrefix{State: "two", Block: 128}, "c:1")
	names := func(state string) (all []string) {
		var r report
		if err := json.Unmarshal(visit(t, newStatus(t, state), "GET", "/state.json", "/state.json").Body.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		for _, s := range r.States {
			all = append(all, s.Name)
		}
		return all
	}
	if got := names("one"); len(got) != 1 || got[0] != "one" {
		t.Errorf("llm_status one shows %q", got)
	}
	// Two of one name and unlike shapes don't hide one another.
	if got := names(""); len(got) != 3 || got[1] == got[2] {
		t.Errorf("llm_status shows %q, want three names", got)
	}
	if got := names(names("")[2]); len(got) != 1 {
		t.Errorf("asked for by the name that it is listed by, %q are shown", got)
	}
	if e := explained(t, "/llm_prefix/explain?state="+url.QueryEscape(names("")[2]), chatBody("Hello.", 3)); e.Choice == nil {
		t.Errorf("a state asked for by that name explains %+v", e)
	}
	if w := visit(t, newStatus(t, "other"), "GET", "/state.json", "/state.json"); w.Code != 404 {
		t.Errorf("state.json of a state that isn't there: %d, want 404", w.Code)
	}
}

// stream is a client of events.
type stream struct {
	http.ResponseWriter
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *stream) FlushError() error { return nil }

// events takes what came since it was last called.
func (s *stream) events(t *testing.T) (reports []report) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := bufio.NewScanner(&s.text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if strings.Contains(text, canary) {
				t.Error("an event has text of a prompt")
			}
			var r report
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				t.Fatal(err)
			}
			reports = append(reports, r)
		}
	}
	s.text.Reset()
	return reports
}

func TestStatusEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLookout(t, LLMPrefix{}, "a:1", "b:1", "c:1", "d:1")
		s := newStatus(t, "")
		ctx, leave := context.WithCancel(t.Context())
		listen := func(ctx context.Context) (*stream, chan error) {
			client, ended := &stream{ResponseWriter: httptest.NewRecorder()}, make(chan error, 1)
			go func() {
				ended <- s.ServeHTTP(client, httptest.NewRequest("GET", "/events", nil).WithContext(ctx), nil)
			}()
			return client, ended
		}
		leaving, left := listen(ctx)
		staying, ended := listen(t.Context())
		synctest.Wait()
		if got := staying.events(t); len(got) != 1 || got[0].States[0].Decisions != 0 {
			t.Fatalf("a stream begins with %+v, want the state as it is", got)
		}
		l.story() // takes 4.7 s
		time.Sleep(time.Second)
		synctest.Wait()
		got := staying.events(t)
		if len(got) != 5 || got[4].States[0].Decisions != 7 {
			t.Errorf("after 5.7 s %d events came; the last is %+v", len(got), got[len(got)-1])
		}
		if n := streaming.Load(); n != 2 {
			t.Errorf("%d streams are counted, want 2", n)
		}
		leave()
		synctest.Wait()
		if err := <-left; err != nil || len(leaving.events(t)) != 6 {
			t.Errorf("a client that leaves ends its stream with %v", err)
		}
		// The config ends, as on a reload.
		if err := (stopper{s}).Handle(t.Context(), caddy.Event{}); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the end of the config ends a stream with %v", err)
		}
		if n := streaming.Load(); n != 0 {
			t.Errorf("%d streams are counted after all ended", n)
		}
	})
}

func TestStatusStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStatus(t, "")
		ended := make(chan error, statusStreams)
		for range statusStreams {
			go func() {
				ended <- s.ServeHTTP(&stream{ResponseWriter: httptest.NewRecorder()}, httptest.NewRequest("GET", "/events", nil), nil)
			}()
		}
		synctest.Wait()
		if w := visit(t, s, "GET", "/events", "/events"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("one stream more than may be: %d, want 503", w.Code)
		}
		if w := visit(t, s, "GET", "/state.json", "/state.json"); w.Code != 200 {
			t.Errorf("state.json beside so many streams: %d", w.Code)
		}
		s.end()
		for range statusStreams {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// A client that went away without a word must not hold its stream.
func TestStatusStreamEndsWithItsConnection(t *testing.T) {
	s := newStatus(t, "")
	if err := s.ServeHTTP(broken{httptest.NewRecorder()}, httptest.NewRequest("GET", "/events", nil), nil); err != nil || streaming.Load() != 0 {
		t.Errorf("a broken connection ends a stream with %v, and %d streams are counted", err, streaming.Load())
	}
}

type broken struct{ http.ResponseWriter }

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestStatusCaddyfile(t *testing.T) {
	adaptSite := func(lines string) (string, error) {
		text, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(":80 {\n"+lines+"\n}\n"), map[string]any{"filename": "Caddyfile"})
		return string(text), err
	}
	for _, c := range []struct{ lines, want string }{
		{"\thandle_path /llm/* {\n\t\tllm_status\n\t}", `{"handler":"llm_status"}`},
		{"\tllm_status /llm/* chat", `{"handler":"llm_status","state":"chat"}`},
		// It comes before the proxy, wherever it stands.
		{"\treverse_proxy a:1\n\tllm_status /llm/*", `{"handler":"llm_status"}]},{"handle":[{"handler":"reverse_proxy"`},
	} {
		if got, err := adaptSite(c.lines); err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s\nadapts to %s, %v, want %s in it", c.lines, got, err, c.want)
		}
	}
	for _, c := range []struct{ lines, want string }{
		{"\tllm_status a b", "parsing caddyfile tokens for 'llm_status': wrong argument count or unexpected line ending after 'b', at Caddyfile:2"},
		{"\tllm_status {\n\t\tstate chat\n\t}", "parsing caddyfile tokens for 'llm_status': unrecognized llm_status option 'state', at Caddyfile:3"},
	} {
		if _, err := adaptSite(c.lines); err == nil || err.Error() != c.want {
			t.Errorf("%s\nfails with %v, want %s", c.lines, err, c.want)
		}
	}
}
