package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go/http3"
)

// Two handlers of one pool share what they know, and count together.
func TestTwoHandlersOnOnePool(t *testing.T) {
	engines := newEngines(t, 2)
	second := "handle_path /second/* {\n reverse_proxy " + strings.Join(addrs(engines), " ") + " {\n lb_policy llm_prefix {\n scrape_interval 50ms\n expose X-LLM\n }\n }\n}"
	g := site{upstreams: addrs(engines), before: second}.start(t)
	for i := range 20 {
		prompt := chat(user(text(fmt.Sprint("shared", i), 3000)), nil)
		first := g.post("/v1/chat/completions", prompt)
		again := g.post("/second/v1/chat/completions", prompt)
		if first.status != 200 || again.status != 200 || again.engine != first.engine || !strings.Contains(again.route, "reason=prefix") {
			t.Fatalf("the second handler sends to %s by %q what the first sent to %s", again.engine, again.route, first.engine)
		}
	}
	for _, e := range engines {
		e.hold()
	}
	done := make(chan answer, 2)
	for _, path := range []string{"/v1/chat/completions", "/second/v1/chat/completions"} {
		go func() { done <- g.post(path, chat(user("Held."), nil)) }() // ends below
	}
	eventually(t, "both handlers' requests count", func() bool {
		n, series := g.metric("caddy_llm_prefix_inflight_requests")
		return n == 2 && series == 4 // two phases of two upstreams
	})
	for _, e := range engines {
		e.release()
	}
	<-done
	<-done
	g.idle()
}

// zone is a name server on loopback that knows one name.
func zone(t *testing.T, records func() []dns.RR) (address string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(q)
		for _, r := range records() {
			if r.Header().Rrtype == q.Question[0].Qtype {
				m.Answer = append(m.Answer, r)
			}
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = s.ActivateAndServe() }() // ends with Shutdown
	t.Cleanup(func() { _ = s.Shutdown() })
	return conn.LocalAddr().String()
}

// FC-94: upstreams that DNS tells of, by address and by service, keep their
// conversations in whatever order it tells them.
func TestFC94UpstreamsFromDNS(t *testing.T) {
	engines := newEngines(t, 3)
	// All behind one name have one port.
	var listeners []net.Listener
	for range 50 {
		_, port, _ := net.SplitHostPort(deadAddress(t))
		for i := range engines {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:%s", i+2, port))
			if err != nil {
				break // not on every machine, or taken
			}
			listeners = append(listeners, l)
		}
		if len(listeners) == len(engines) {
			break
		}
		for _, l := range listeners {
			l.Close()
		}
		listeners = nil
	}
	var calls atomic.Int64
	rotated := func(all []dns.RR) []dns.RR {
		n := int(calls.Add(1)) % len(all)
		return append(append([]dns.RR{}, all[n:]...), all[:n]...)
	}
	var a, srv []dns.RR
	for i, e := range engines {
		record, err := dns.NewRR(fmt.Sprintf("engines.test. 1 IN A 127.0.0.%d", i+2))
		if err != nil {
			t.Fatal(err)
		}
		a = append(a, record)
		_, port, _ := net.SplitHostPort(e.addr)
		if record, err = dns.NewRR("_vllm._tcp.engines.test. 1 IN SRV 1 1 " + port + " one.engines.test."); err != nil {
			t.Fatal(err)
		}
		srv = append(srv, record)
	}
	one, err := dns.NewRR("one.engines.test. 1 IN A 127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	resolver := zone(t, func() []dns.RR { return append(rotated(srv), one) })
	cases := map[string]string{
		"srv": "dynamic srv _vllm._tcp.engines.test {\n refresh 1ms\n resolvers " + resolver + "\n}\ntransport http {\n resolvers " + resolver + "\n}",
	}
	if len(listeners) == len(engines) {
		for i, l := range listeners {
			serveOn(t, l, engines[i])
		}
		_, port, _ := net.SplitHostPort(listeners[0].Addr().String())
		cases["a"] = "dynamic a {\n name engines.test\n port " + port + "\n refresh 1ms\n versions ipv4\n resolvers " + zone(t, func() []dns.RR { return rotated(a) }) + "\n}"
	}
	for _, name := range []string{"srv", "a"} {
		t.Run(name, func(t *testing.T) {
			proxy, ok := cases[name]
			if !ok {
				t.Skip("this machine has no 127.0.0.2")
			}
			g := site{proxy: proxy}.start(t)
			homes := map[int]string{}
			for turn := range 4 {
				for c := range 12 {
					messages := user(text(fmt.Sprint(name, c), 3000))
					for i := range turn {
						messages = append(messages, message{"user", fmt.Sprint(i)})
					}
					got := g.post("/v1/chat/completions", chat(messages, nil))
					if got.status != 200 {
						t.Fatalf("status %d: %.200s", got.status, got.body)
					}
					if turn > 0 && got.engine != homes[c] {
						t.Errorf("turn %d of conversation %d moves from %s to %s by %q", turn, c, homes[c], got.engine, got.route)
					}
					homes[c] = got.engine
				}
			}
			if _, series := g.metric("caddy_llm_prefix_index_entries"); series != len(engines) {
				t.Errorf("%d upstreams are known, want %d", series, len(engines))
			}
			eventually(t, "each is scraped", func() bool {
				n, _ := g.metric("caddy_llm_prefix_upstream_load_known")
				return n == float64(len(engines))
			})
		})
	}
}

// Requests reach upstreams behind socket files, and one of them that dies costs
// a second try.
func TestUpstreamsBehindSockets(t *testing.T) {
	engines := newEngines(t, 2)
	dir, err := os.MkdirTemp("", "e2e") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var sockets []string
	for i, e := range engines {
		sockets = append(sockets, "unix/"+filepath.Join(dir, fmt.Sprint("u", i)))
		serveAt(t, sockets[i], e)
	}
	g := site{upstreams: append(sockets, "unix/"+filepath.Join(dir, "none")), proxy: "lb_retries 2"}.start(t)
	for i := range 12 {
		prompt := chat(user(text(fmt.Sprint("socket", i), 2000)), map[string]any{"stream": i%2 == 0})
		first := g.post("/v1/chat/completions", prompt)
		again := g.post("/v1/chat/completions", prompt)
		if first.status != 200 || again.status != 200 || again.engine != first.engine {
			t.Errorf("prompt %d: %d of %s, then %d of %s", i, first.status, first.engine, again.status, again.engine)
		}
	}
	g.becomes(true, sockets...)
	g.idle()
}

// Clients of HTTP/2 and HTTP/3 over TLS are served as others are.
func TestClientsOfEveryHTTP(t *testing.T) {
	engines := newEngines(t, 2)
	address := deadAddress(t)
	_, port, _ := net.SplitHostPort(address)
	data := t.TempDir()
	secure := fmt.Sprintf("https://localhost:%s {\n\tbind 127.0.0.1\n\ttls internal\n\treverse_proxy %s {\n\t\tlb_policy llm_prefix {\n\t\t\texpose X-LLM\n\t\t}\n\t}\n}\n",
		port, strings.Join(addrs(engines), " "))
	s := site{upstreams: addrs(engines), global: "skip_install_trust\nstorage file_system " + data + "\nauto_https disable_redirects"}
	g := s.start(t)
	if err := load(g.text + secure); err != nil {
		t.Fatal(err)
	}
	trust := &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"} //nolint:gosec // the authority was made a moment ago
	h2 := &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}}
	defer h2.CloseIdleConnections()
	h3 := &http3.Transport{TLSClientConfig: trust}
	defer h3.Close()
	for want, transport := range map[string]http.RoundTripper{"HTTP/2.0": h2, "HTTP/3.0": h3} {
		client := &http.Client{Transport: transport}
		home := ""
		for i := range 10 {
			body := chat(user(text(want, 3000)), map[string]any{"stream": i%2 == 0, "seed": i})
			host := "localhost:" + port
			if want == "HTTP/3.0" {
				host = address // no name is looked up
			}
			req, err := http.NewRequest(http.MethodPost, "https://"+host+"/v1/chat/completions", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = "localhost:" + port
			req.Header.Set("Content-Type", "application/json")
			var res *http.Response
			eventually(t, "Caddy has a certificate", func() bool { // it gets it meanwhile
				req.Body, _ = req.GetBody()
				res, err = client.Do(req)
				return err == nil || !strings.Contains(err.Error(), "tls: internal error") && !strings.Contains(err.Error(), "CRYPTO_ERROR")
			})
			if err != nil {
				t.Fatalf("%s: %v", want, err)
			}
			text, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != 200 || res.Proto != want {
				t.Fatalf("%s: status %d by %s, %v: %.200s", want, res.StatusCode, res.Proto, err, text)
			}
			if i%2 == 0 && !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
				t.Errorf("%s: a stream ends with %.100q", want, text[max(0, len(text)-100):])
			}
			engine := res.Header.Get("X-Engine")
			if i > 0 && engine != home {
				t.Errorf("%s: a prompt moves from %s to %s", want, home, engine)
			}
			home = engine
		}
	}
	g.idle()
}

// Active health checks take an upstream away and bring it back; what the policy
// knows of it outlives that.
func TestActiveHealthChecks(t *testing.T) {
	engines := newEngines(t, 2)
	g := site{upstreams: addrs(engines), proxy: "health_uri /health\nhealth_interval 20ms\nhealth_timeout 5s"}.start(t)
	prompt := chat(user(text("healthy", 3000)), nil)
	home := g.post("/v1/chat/completions", prompt).engine
	at := engines[0]
	if at.name != home {
		at = engines[1]
	}
	at.fail(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/health" {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	eventually(t, "its prompts go elsewhere", func() bool { return g.post("/v1/chat/completions", prompt).engine != home })
	if a := g.post("/v1/chat/completions", prompt); a.status != 200 || a.attempt != 1 {
		t.Errorf("status %d at attempt %d, want the other at once", a.status, a.attempt)
	}
	at.fail(nil)
	i := 0
	eventually(t, "it is used again", func() bool {
		i++
		return g.post("/v1/chat/completions", chat(user(text(fmt.Sprint("back", i), 600)), nil)).engine == home
	})
	g.idle()
}

// Responses that a handle_response takes over, and policies that have this one
// as their fallback, leave nothing behind.
func TestHandleResponseAndBeingAFallback(t *testing.T) {
	engines := newEngines(t, 2)
	g := site{upstreams: addrs(engines), proxy: "@refused status 4xx\nhandle_response @refused {\n respond \"taken over\" 418\n}\n@fine status 2xx\nhandle_response @fine {\n copy_response_headers\n copy_response 200\n}"}.start(t)
	if a := g.post("/v1/chat/completions", chat(user("Hello."), map[string]any{"max_tokens": "many"})); a.status != 418 || a.body != "taken over" {
		t.Errorf("status %d, %.100q, want what handle_response says", a.status, a.body)
	}
	for i := range 4 {
		a := g.post("/v1/chat/completions", chat(user(text("copied", 2000)), map[string]any{"stream": i%2 == 0}))
		if a.status != 200 || i > 0 && !strings.Contains(a.route, "reason=prefix") {
			t.Errorf("status %d by %q", a.status, a.route)
		}
	}
	g.idle()

	nested := strings.Replace(g.text, "lb_policy llm_prefix {", "lb_policy header X-Pinned {\n fallback llm_prefix {", 1)
	nested = strings.Replace(nested, "expose X-LLM", "expose X-LLM\n }", 1)
	nested = strings.Replace(nested, "@refused status 4xx\nhandle_response @refused {\n respond \"taken over\" 418\n}\n@fine status 2xx\nhandle_response @fine {\n copy_response_headers\n copy_response 200\n}", "", 1)
	if err := load(nested); err != nil {
		t.Fatalf("%v in\n%s", err, nested)
	}
	g.client.CloseIdleConnections()
	prompt := chat(user(text("nested", 3000)), nil)
	home := g.insist("/v1/chat/completions", prompt).engine
	for range 5 {
		if a := g.insist("/v1/chat/completions", prompt); a.status != 200 || a.engine != home {
			t.Errorf("as a fallback it sends a known prompt to %s, status %d, want %s", a.engine, a.status, home)
		}
	}
	if n, _ := g.metric("caddy_llm_prefix_decisions_total", `reason="prefix"`); n < 5 {
		t.Errorf("%v decisions for a prefix, want at least the five", n)
	}
	// A request that the outer policy pins isn't ours.
	before, _ := g.metric("caddy_llm_prefix_decisions_total")
	if a := g.send(http.MethodPost, "/v1/chat/completions", map[string]string{"X-Pinned": "1"}, prompt); a.status != 200 {
		t.Errorf("status %d", a.status)
	}
	if after, _ := g.metric("caddy_llm_prefix_decisions_total"); after != before {
		t.Errorf("%v decisions for a request that another policy decides", after-before)
	}
	g.idle()
}
