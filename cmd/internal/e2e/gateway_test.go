package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/standard"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"
	_ "github.com/caddyserver/caddy/v2/modules/logging"
	_ "github.com/caddyserver/caddy/v2/modules/metrics"

	_ "github.com/caddyllm/caddy-llm-prefix/caddyllm"
)

// site is what a test says of the gateway; the rest is the same for all.
type site struct {
	upstreams []string
	policy    string // options in lb_policy llm_prefix { … }
	proxy     string // further lines in reverse_proxy { … }
	before    string // further lines in the site
	admin     string // where the admin API listens; none if empty
	tcp       bool   // listen on a free port, not on a socket file
	asked     bool   // have the admin API on a socket file, for ask
	global    string // further lines of global options
	listen    string // filled in by start
	log       string
}

// gateway is Caddy, running with a site.
type gateway struct {
	t      *testing.T
	client *http.Client
	listen string // "unix/…" or an address
	log    string
	admin  string // the admin endpoint's socket file, empty without one
	text   string // the Caddyfile
}

func (s site) caddyfile() string {
	port, bind := "", s.listen
	if s.tcp {
		bind, port, _ = strings.Cut(s.listen, ":")
		port = ":" + port
	}
	return fmt.Sprintf(`{
	admin %s
	persist_config off
	%s
	log {
		output file %s
		level DEBUG
	}
}
http://gateway%s {
	bind %s
	log
	handle /gateway/metrics {
		metrics
	}
	%s
	handle {
		reverse_proxy %s {
			lb_policy llm_prefix {
				scrape_interval 50ms
				expose X-LLM
				%s
			}
			%s
		}
	}
}
`, cmp.Or(s.admin, "off"), s.global, s.log, port, bind, s.before, strings.Join(s.upstreams, " "), s.policy, s.proxy)
}

// load makes Caddy run a Caddyfile; an earlier one is replaced, as on reload.
func load(text string) error {
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return err
	}
	for _, w := range warnings {
		if !strings.Contains(w.Message, "not formatted") {
			return fmt.Errorf("warning of the adapter: %s", w.Message)
		}
	}
	return caddy.Load(config, true)
}

// start runs Caddy with a site until the test ends.
func (s site) start(t *testing.T) *gateway {
	t.Helper()
	// Socket paths have a short limit, which t.TempDir may exceed.
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s.listen, s.log = "unix/"+filepath.Join(dir, "s"), filepath.Join(dir, "log")
	if s.asked {
		s.admin = "unix/" + filepath.Join(dir, "a")
	}
	if s.tcp {
		s.listen = deadAddress(t) // free, as it refuses connections
	}
	text := s.caddyfile()
	if err := load(text); err != nil {
		t.Fatalf("loading Caddyfile: %v\n%s", err, text)
	}
	g := &gateway{t: t, listen: s.listen, log: s.log, text: text}
	if s.asked {
		g.admin = filepath.Join(dir, "a")
	}
	g.client = g.newClient()
	t.Cleanup(func() {
		g.audit()
		g.client.CloseIdleConnections()
		if err := caddy.Stop(); err != nil {
			t.Errorf("stopping Caddy: %v", err)
		}
	})
	return g
}

func (g *gateway) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	if path, ok := strings.CutPrefix(g.listen, "unix/"); ok {
		return d.DialContext(ctx, "unix", path)
	}
	return d.DialContext(ctx, "tcp", g.listen)
}

func (g *gateway) newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return g.dial(ctx) },
	}}
}

// answer is what a client saw.
type answer struct {
	status  int
	body    string
	engine  string // which one answered, by the bench's header
	route   string // what the policy told of its decision
	attempt int
}

var attemptField = regexp.MustCompile(`attempt=(\d+)`)

func (g *gateway) do(req *http.Request) (answer, error) {
	res, err := g.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	a := answer{status: res.StatusCode, body: string(body), engine: res.Header.Get("X-Engine"), route: res.Header.Get("X-LLM")}
	if m := attemptField.FindStringSubmatch(a.route); m != nil {
		a.attempt, _ = strconv.Atoi(m[1])
	}
	return a, err
}

// post sends a body and wants an answer, whatever its status.
func (g *gateway) post(path string, body []byte) answer {
	g.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://gateway"+path, bytes.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	a, err := g.do(req)
	if err != nil {
		g.t.Fatalf("POST %s: %v", path, err)
	}
	return a
}

func (g *gateway) get(path string) answer {
	g.t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://gateway"+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	var a answer
	err = again(func() error { a, err = g.do(req); return err })
	if err != nil {
		g.t.Fatalf("GET %s: %v", path, err)
	}
	return a
}

// insist is post after a reload.
func (g *gateway) insist(path string, body []byte) (a answer) {
	g.t.Helper()
	err := again(func() error {
		req, err := http.NewRequest(http.MethodPost, "http://gateway"+path, bytes.NewReader(body))
		if err != nil {
			g.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		a, err = g.do(req)
		return err
	})
	if err != nil {
		g.t.Fatalf("POST %s: %v", path, err)
	}
	return a
}

// again does what a reload may cut off: a server that is shut down closes
// connections on which no request has arrived yet, and one may be on its way.
// Clients ask again then.
func again(ask func() error) (err error) {
	for range 10 {
		err = ask()
		// The last one is http's, which exports none.
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) &&
			(err == nil || !strings.Contains(err.Error(), "server closed idle connection")) {
			break
		}
	}
	return err
}

// metric sums the series of a name whose labels contain all of want.
func (g *gateway) metric(name string, want ...string) (sum float64, series int) {
	g.t.Helper()
	for line := range strings.Lines(g.get("/gateway/metrics").body) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		matches := true
		for _, w := range want {
			matches = matches && strings.Contains(rest, w)
		}
		if fields := strings.Fields(rest); matches {
			v, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err != nil {
				g.t.Fatalf("metric line %q: %v", line, err)
			}
			sum, series = sum+v, series+1
		}
	}
	return sum, series
}

// logged returns the log's lines that contain all of want.
func (g *gateway) logged(want ...string) []string {
	g.t.Helper()
	text, err := os.ReadFile(g.log)
	if err != nil {
		g.t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		matches := true
		for _, w := range want {
			matches = matches && strings.Contains(line, w)
		}
		if matches {
			found = append(found, line)
		}
	}
	return found
}

// idle waits until the policy counts no request in flight.
func (g *gateway) idle() {
	g.t.Helper()
	eventually(g.t, "no request is in flight at the gateway", func() bool {
		n, _ := g.metric("caddy_llm_prefix_inflight_requests")
		return n == 0
	})
}

// patience bounds the wait for what must happen soon. A machine under load is
// slow, and a test that passes never waits for it.
const patience = 20 * time.Second

// eventually polls what other goroutines are about to do.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("waiting until %s: gave up after %v", what, patience)
		case <-tick.C:
		}
	}
}

// message is a chat message.
type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

// chat makes a request body. Short answers, unless a test says otherwise.
func chat(messages []message, more map[string]any) []byte {
	body := map[string]any{"model": model, "messages": messages, "max_tokens": 4}
	for k, v := range more {
		body[k] = v
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return text
}

func user(text string) []message { return []message{{"user", text}} }
