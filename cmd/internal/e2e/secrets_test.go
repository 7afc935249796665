package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// FC-103: no key is written down: not that of the metrics, whether they answer
// or fail, not the client's, not in an address, at any level; and the admin
// endpoint shows the placeholder.
func TestFC103CredentialsAreNeverLogged(t *testing.T) {
	faces := newFaces(t, 3)
	key := "Bearer " + canary + "key"
	t.Setenv("METRICS_KEY", key)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(canary+"file"), 0o600); err != nil {
		t.Fatal(err)
	}
	var seen atomic.Value
	faces[0].answer(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("Authorization") + " " + r.Header.Get("X-Other"))
		_, _ = io.WriteString(w, quietPage(0, 0))
	})
	faces[1].answer(func(w http.ResponseWriter, r *http.Request) { // tells what it was sent
		http.Error(w, r.Header.Get("Authorization"), http.StatusUnauthorized)
	})
	faces[2].answer(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://u:"+canary+"@127.0.0.1:1/metrics?key="+canary, http.StatusFound)
	})
	g := site{
		upstreams: append(faceAddrs(faces), deadAddress(t)), asked: true, proxy: "lb_retries 3",
		policy: "metrics_header Authorization {env.METRICS_KEY}\nmetrics_header X-Other {file." + file + "}",
	}.start(t)
	g.becomes(true, faces[0].addr)
	for _, f := range faces[1:] {
		eventually(t, "a scrape has failed", func() bool { return len(g.warnings(f.addr)) > 0 })
	}
	// Clients' keys, with an answer, with a failure and with retries.
	for i, fault := range []func(http.ResponseWriter, *http.Request) bool{nil, reset(10), status(500)} {
		for _, f := range faces {
			f.engine.fail(fault)
		}
		g.send(http.MethodPost, "/v1/chat/completions", map[string]string{
			"Authorization": "Bearer " + canary, "Cookie": "session=" + canary, "Proxy-Authorization": "Basic " + canary,
		}, chat(user(text(fmt.Sprint("key", i), 2000)), nil))
	}
	g.idle()
	status, config := g.ask(http.MethodGet, "/config/", nil)
	if status != 200 || !strings.Contains(config, "{env.METRICS_KEY}") || !strings.Contains(config, "{file.") {
		t.Errorf("the admin endpoint shows status %d, %.300s; want the placeholders", status, config)
	}
	if got := seen.Load(); got != key+" "+canary+"file" {
		t.Errorf("the metrics were asked for with %q: this test would see nothing", got)
	}

	// A password in an address is refused without being repeated.
	for _, option := range []string{
		"metrics_url * http://u:" + canary + "@127.0.0.1:1/metrics",
		"metrics_header Authorization \"" + canary + "\\n\"",
	} {
		err := load(strings.Replace(g.text, "scrape_interval 50ms", "scrape_interval 50ms\n"+option, 1))
		if err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%.30s…: %v, want a refusal that doesn't repeat it", option, err)
		}
	}
}

// FC-104: nothing that a client says of addresses or of routing moves its
// request, and no internal address is asked for.
func TestFC104ClientsCannotPickAnUpstream(t *testing.T) {
	engines := newEngines(t, 3)
	g := site{upstreams: addrs(engines), policy: "session_header X-Session-Id"}.start(t)
	shared := text("conversation", 3000)
	home := g.post("/v1/chat/completions", chat(user(shared), nil)).engine
	for _, e := range engines {
		for _, name := range []string{
			"X-Gateway-Destination-Endpoint", "X-Prefiller-Host-Port", "X-LLM-Prefix-Upstream", "X-Upstream", "X-LLM", "X-Engine",
			"X-Forwarded-Host", "X-Forwarded-For", "Forwarded", "X-Data-Parallel-Rank", "X-Session-Id",
		} {
			for _, value := range []string{e.addr, "http://" + e.addr, "169.254.169.254:80", "upstream=" + e.addr} {
				a := g.send(http.MethodPost, "/v1/chat/completions", map[string]string{name: value}, chat(user(shared), nil))
				if a.status != 200 || a.engine != home {
					t.Fatalf("%s: %s moves a request to %q, status %d", name, value, a.engine, a.status)
				}
			}
		}
		// Names of hosts, and a request line with an address in it.
		for _, line := range []string{"POST http://" + e.addr + "/v1/chat/completions", "POST http://169.254.169.254/v1/chat/completions", "POST /v1/chat/completions"} {
			conn, err := g.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			body := chat(user(shared), nil)
			fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", line, len(body), body)
			got := answered(t, conn)
			conn.Close()
			if got != "" && got != home {
				t.Errorf("%s moves a request to %s", line, got)
			}
		}
		// In the body.
		body := chat(user(shared), map[string]any{"user": e.addr, "upstream": e.addr, "prompt_cache_key": e.addr})
		if a := g.post("/v1/chat/completions", body); a.engine != home {
			t.Errorf("a body that names %s moves a request there", e.name)
		}
	}
	for _, name := range []string{"X-Session-Id", "X-LLM"} {
		if lines := g.logged(`"upstream":"169.254`); len(lines) > 0 {
			t.Errorf("%s: an address of a client's was dialled: %s", name, lines[0])
		}
	}
}

// answered is the engine that answered on a connection, empty if none did.
func answered(t *testing.T, conn net.Conn) string {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.Header.Get("X-Engine")
}
