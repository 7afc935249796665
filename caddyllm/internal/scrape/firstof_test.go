package scrape

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// counted is a fetch of a fixed answer that counts its calls and the bodies
// not closed.
type counted struct {
	status     int
	kind, text string
	err        error
	calls      int
	open       int
}

// Close implements io.Closer.
func (c *counted) Close() error { c.open--; return nil }

func (c *counted) fetch(context.Context) (io.ReadCloser, int, string, error) {
	c.calls++
	if c.err != nil {
		return nil, 0, "", c.err
	}
	c.open++
	return struct {
		io.Reader
		io.Closer
	}{strings.NewReader(c.text), c}, c.status, c.kind, nil
}

func TestFirstOfKeepsToThePlaceWithThePage(t *testing.T) {
	json := &counted{status: 200, kind: "application/json; charset=utf-8", text: "[]"}
	prom := &counted{status: 200, kind: "text/plain; version=0.0.4", text: page}
	f := FirstOf(json.fetch, prom.fetch)
	for range 3 {
		body, status, _, err := f(t.Context())
		if err != nil || status != 200 {
			t.Fatalf("FirstOf = %d, %v, want 200", status, err)
		}
		if text, _ := io.ReadAll(body); string(text) != page {
			t.Errorf("FirstOf's body = %q, want the second place's page", text)
		}
		body.Close()
	}
	if json.calls != 1 || prom.calls != 3 || json.open != 0 || prom.open != 0 {
		t.Errorf("calls = %d, %d, bodies left open = %d, %d, want 1, 3, 0, 0", json.calls, prom.calls, json.open, prom.open)
	}
	prom.status = 404
	if _, status, _, _ := f(t.Context()); status != 404 {
		t.Errorf("FirstOf of a page that went = %d, want 404", status)
	}
	json.kind = "text/plain"
	f(t.Context())
	if json.calls != 2 {
		t.Errorf("calls of the first place = %d, want 2: searched anew", json.calls)
	}
}

func TestFirstOfGivesTheFirstAnswerIfNoneHasAPage(t *testing.T) {
	key := &counted{status: 401, kind: "text/plain"}
	none := &counted{status: 404, kind: "text/html"}
	if _, status, _, err := FirstOf(key.fetch, none.fetch)(t.Context()); status != 401 || err != nil {
		t.Errorf("FirstOf = %d, %v, want 401", status, err)
	}
	away := &counted{err: errors.New("refused")}
	if _, _, _, err := FirstOf(away.fetch, none.fetch)(t.Context()); !errors.Is(err, away.err) || none.calls != 1 {
		t.Errorf("FirstOf = %v after %d calls of the second place, want %v and no further call", err, none.calls-1, away.err)
	}
}
