package docs

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/simtest"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// gateway is Caddy in front of two simulated engines.
type gateway struct {
	t      *testing.T
	client *http.Client
	log    string // file
}

// patience bounds the wait for what happens soon.
const patience = 20 * time.Second

// start runs a gateway until the test ends. site has further lines for its
// site.
func start(t *testing.T, site string) *gateway {
	t.Helper()
	preset, ok := simengine.PresetByName("llama3.1-8b-h100")
	if !ok {
		t.Fatal("there is no such preset")
	}
	var engines []string
	for range 2 {
		s := httptest.NewServer(simtest.Start(t, simtest.Server{Model: "m", Engine: preset.Config, Speed: 1000}))
		t.Cleanup(s.Close)
		engines = append(engines, s.Listener.Addr().String())
	}
	// Caddy can't tell which free port it got, and a socket's path is short.
	dir, err := os.MkdirTemp("", "docs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket, log := filepath.Join(dir, "s"), filepath.Join(dir, "log")
	config, err := adapt(fmt.Sprintf(`{
	admin off
	persist_config off
	log {
		output file %s
	}
}
http://gateway {
	bind unix/%s
	log
	%s
	handle /metrics {
		metrics
	}
	handle {
		reverse_proxy %s {
			lb_policy llm_prefix {
				scrape_interval 50ms
				expose X-LLM
			}
		}
	}
}
`, log, socket, site, strings.Join(engines, " ")))
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, log: log, client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}}
	t.Cleanup(func() {
		g.client.CloseIdleConnections()
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// ask sends a request and reads its answer, which must be good.
func (g *gateway) ask(method, path, body string) (answer string, header http.Header) {
	g.t.Helper()
	req, err := http.NewRequest(method, "http://gateway"+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := g.client.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		g.t.Fatalf("%s %s: %d, %v: %.300s", method, path, res.StatusCode, err, text)
	}
	return string(text), res.Header
}

// chat has one answered that tells its cached tokens.
func (g *gateway) chat() http.Header {
	g.t.Helper()
	_, header := g.ask(http.MethodPost, "/v1/chat/completions", fmt.Sprintf(
		`{"model":"m","max_tokens":4,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":%q}]}`,
		strings.Repeat("What is a prefix cache? ", 200)))
	return header
}

// metrics is the page when it has all that there is: after a scrape, a decision
// and a fallback.
func (g *gateway) metrics() string {
	g.t.Helper()
	for range 2 {
		g.chat()
	}
	g.ask(http.MethodGet, "/v1/models", "")
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		text, _ := g.ask(http.MethodGet, "/metrics", "")
		if strings.Count(text, "\ncaddy_llm_prefix_upstream_waiting_requests{") == 2 {
			return text
		}
		select {
		case <-deadline:
			g.t.Fatalf("the engines aren't scraped: %s", text)
		case <-tick.C:
		}
	}
}
