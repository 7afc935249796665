package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// canary is in all that must never be seen outside of requests and answers:
// prompts, salts, users, keys and credentials.
const canary = "CANARY7f3a"

// audited counts what was looked through, so that looking can't be for nothing.
var audited struct{ gateways, lines, pages, answers atomic.Int64 }

// audit looks for the canary in all that a gateway has written down: its log at
// level DEBUG, its metrics, and what its admin endpoint tells. Each gateway of
// the suite is audited when its test ends.
func (g *gateway) audit() {
	g.t.Helper()
	audited.gateways.Add(1)
	log, err := os.ReadFile(g.log)
	if err != nil {
		g.t.Errorf("auditing the log: %v", err)
	}
	audited.lines.Add(int64(strings.Count(string(log), "\n")))
	silent(g.t, "the log", string(log))
	req, err := http.NewRequest(http.MethodGet, "http://gateway/gateway/metrics", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	// A test may have stopped its gateway, or taken the page away.
	if a, err := g.do(req); err == nil && a.status == http.StatusOK {
		audited.pages.Add(1)
		silent(g.t, "the metrics", a.body)
	}
	if g.admin == "" {
		return
	}
	for _, path := range []string{"/config/", "/llm_prefix/state", "/reverse_proxy/upstreams", "/metrics", "/debug/pprof/goroutine?debug=1", "/debug/pprof/goroutine?debug=2"} {
		status, text := g.ask(http.MethodGet, path, nil)
		if status != http.StatusOK {
			g.t.Errorf("auditing the admin endpoint: %s: status %d", path, status)
		}
		audited.answers.Add(1)
		silent(g.t, "the admin endpoint's "+path, text)
	}
}

// silent finds the canary in a text.
func silent(t *testing.T, what, text string) {
	t.Helper()
	if !strings.Contains(text, canary) {
		return
	}
	shown := 0
	for line := range strings.Lines(text) {
		if at := strings.Index(line, canary); at >= 0 && shown < 5 {
			shown++
			t.Errorf("%s: …%s", what, line[max(0, at-200):min(len(line), at+60)])
		}
	}
}

// ask asks the admin endpoint.
func (g *gateway) ask(method, path string, body io.Reader) (status int, text string) {
	g.t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", g.admin)
		},
	}}
	// The endpoint takes no requests from elsewhere, and that is its name here.
	req, err := http.NewRequest(method, "http://127.0.0.1"+path, body)
	if err != nil {
		g.t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		g.t.Errorf("asking the admin endpoint: %v", err)
		return 0, ""
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Errorf("asking the admin endpoint: %v", err)
	}
	return res.StatusCode, string(all)
}

func TestMain(m *testing.M) {
	code := m.Run()
	if testing.Verbose() {
		fmt.Printf("audited for canaries: %d gateways, %d lines of logs, %d pages of metrics, %d answers of admin endpoints\n",
			audited.gateways.Load(), audited.lines.Load(), audited.pages.Load(), audited.answers.Load())
	}
	os.Exit(code)
}

// The audit finds what it looks for, in each of the places that it looks at.
func TestTheAuditFindsCanaries(t *testing.T) {
	for _, text := range []string{canary, "x" + canary + "\n", "a\nb " + canary + " c\n", strings.Repeat("x", 1000) + canary} {
		found := &testing.T{}
		silent(found, "a text", text)
		if !found.Failed() {
			t.Errorf("not found in %.40q", text)
		}
	}
	none := &testing.T{}
	silent(none, "a text", "CANARY")
	if none.Failed() {
		t.Error("found where it isn't")
	}
	// Metrics are in the place that the audit looks at, and so is the state.
	engines := newEngines(t, 1)
	g := site{upstreams: addrs(engines), asked: true}.start(t)
	g.post("/v1/chat/completions", chat(user(text("seen", 2000)), nil))
	if _, page := g.ask(http.MethodGet, "/metrics", nil); !strings.Contains(page, "caddy_llm_prefix_decisions_total") {
		t.Error("the admin endpoint's metrics don't tell of decisions")
	}
	_, text := g.ask(http.MethodGet, "/llm_prefix/state", nil)
	var state any
	if err := json.Unmarshal([]byte(text), &state); err != nil || !strings.Contains(text, engines[0].addr) {
		t.Errorf("the state is %.300s: %v", text, err)
	}
	if !strings.Contains(strings.Join(g.logged(`"level":"debug"`), ""), "upstream") {
		t.Error("the log has no debug lines of the proxy")
	}
	if a := g.get("/gateway/metrics"); a.status != http.StatusOK {
		t.Errorf("the metrics come to status %d", a.status)
	}
}
