package e2e

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// serveAt serves h on an address until the test ends.
func serveAt(t *testing.T, address string, h http.Handler) {
	t.Helper()
	l, err := listenAt(address)
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, h)
}

func serveOn(t *testing.T, l net.Listener, h http.Handler) {
	t.Helper()
	s := &http.Server{Handler: h, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = s.Serve(l) }() // ends with Close
	t.Cleanup(func() { s.Close() })
}

// FC-93: metrics are asked for where requests go, for every form of address;
// and not where only a request could say.
func TestFC93AddressForms(t *testing.T) {
	faces := newFaces(t, 1)
	port := func(address string) string {
		_, p, _ := strings.Cut(address, ":")
		return p
	}
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := "unix/" + filepath.Join(dir, "u.sock")
	serveAt(t, socket, faces[0])
	fromEnv := deadAddress(t)
	serveAt(t, fromEnv, faces[0])
	t.Setenv("UP", fromEnv)

	want := []string{"localhost:" + port(faces[0].addr), faces[0].addr, socket, "{env.UP}"}
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil { // not on every machine
		serveOn(t, l, faces[0])
		want = append(want, l.Addr().String())
	}
	if _, err := net.LookupHost("localhost."); err == nil { // nor is this
		want = append(want, "localhost.:"+port(faces[0].addr))
	}
	unasked := "{http.request.header.X-Up}:80"
	g := site{upstreams: append([]string{unasked, faces[0].addr}, want...)}.start(t)
	g.becomes(true, want...)
	if n, series := g.metric("caddy_llm_prefix_scrapes_total", "X-Up"); n != 0 || series != 0 {
		t.Errorf("an address that a request decides on is scraped %v times", n)
	}
	if lines := g.logged("metrics are not scraped", "X-Up"); len(lines) != 1 {
		t.Errorf("%d lines say that an upstream is not scraped, want 1: %s", len(lines), strings.Join(lines, ""))
	}
}

// FC-93: a port range is so many upstreams.
func TestFC93PortRange(t *testing.T) {
	faces := newFaces(t, 1)
	listeners := listenInARow(t, 4)
	for _, l := range listeners {
		serveOn(t, l, faces[0])
	}
	low := listeners[0].Addr().(*net.TCPAddr).Port
	g := site{upstreams: []string{fmt.Sprintf("127.0.0.1:%d-%d", low, low+3)}}.start(t)
	for i := range 4 {
		g.becomes(true, fmt.Sprintf("127.0.0.1:%d", low+i))
	}
}

// FC-93: TLS of a private authority, HTTP/2 without TLS, and the PROXY
// protocol: a scrape goes the way of a request.
func TestFC93Transports(t *testing.T) {
	// One for each, as a scrape of the gateway before may still arrive.
	faces := newFaces(t, 4)
	var private [2]string
	ca := filepath.Join(t.TempDir(), "ca.pem")
	for i := range private {
		secure := &httptest.Server{Listener: listen(t), Config: &http.Server{Handler: faces[i]}}
		secure.StartTLS()
		t.Cleanup(secure.Close)
		private[i] = secure.Listener.Addr().String()
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}) // the same for both
		if err := os.WriteFile(ca, block, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plain, announced := listen(t), listen(t)
	serveOn(t, plain, faces[2])
	serveOn(t, proxyProtocolListener{announced}, faces[3])
	for i, c := range []struct {
		name, scheme, dial, transport string
		check                         func(*http.Request) bool
	}{
		{"a private authority", "https://", private[0],
			"transport http {\n tls_server_name example.com\n tls_trust_pool file " + ca + "\n}", func(r *http.Request) bool { return r.TLS != nil }},
		{"a server name of the upstream's", "https://", private[1],
			"transport http {\n tls_server_name {http.reverse_proxy.upstream.host}\n tls_trust_pool file " + ca + "\n}", func(r *http.Request) bool { return r.TLS != nil }},
		{"h2c", "h2c://", plain.Addr().String(), "", func(r *http.Request) bool { return r.ProtoMajor == 2 }},
		{"the PROXY protocol", "", announced.Addr().String(), "transport http {\n proxy_protocol v1\n}",
			func(r *http.Request) bool { return r.ProtoMajor == 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The PROXY protocol needs a client with an address.
			g := site{upstreams: []string{c.scheme + c.dial}, proxy: c.transport, tcp: true}.start(t)
			g.becomes(true, c.dial)
			if a := g.post("/v1/chat/completions", chat(user("Hello."), nil)); a.status != 200 {
				t.Errorf("a request comes to status %d: %.200s", a.status, a.body)
			}
			if r := faces[i].requests()[0]; !c.check(r) {
				t.Errorf("the scrape came by %s, TLS %v", r.Proto, r.TLS != nil)
			}
		})
	}
	// An authority that isn't trusted is not passed by.
	g := site{upstreams: []string{"https://" + private[0]}}.start(t)
	eventually(t, "scrapes fail", func() bool { return g.failedFor(private[0], "other") >= 1 })
}

// proxyProtocolListener takes connections that begin with a PROXY line.
type proxyProtocolListener struct{ net.Listener }

// Accept implements net.Listener.
func (l proxyProtocolListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &announcedConn{Conn: conn, r: bufio.NewReader(conn)}, nil
}

type announcedConn struct {
	net.Conn
	r    *bufio.Reader
	once sync.Once
}

// Read implements net.Conn.
func (c *announcedConn) Read(b []byte) (int, error) {
	var err error
	c.once.Do(func() {
		var line string
		if line, err = c.r.ReadString('\n'); err == nil && !strings.HasPrefix(line, "PROXY ") {
			err = fmt.Errorf("connection begins with %q", line)
		}
	})
	if err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// A bound on the proxy's connections must not blind it just when an engine is
// busy.
func TestScrapesDontWaitForTheProxysConnections(t *testing.T) {
	faces := newFaces(t, 1)
	g := site{upstreams: faceAddrs(faces), proxy: "transport http {\n max_conns_per_host 1\n}"}.start(t)
	faces[0].engine.hold()
	done := make(chan answer, 1)
	go func() { done <- g.post("/v1/chat/completions", chat(user("Hello."), nil)) }() // ends below
	eventually(t, "the request has arrived", func() bool { return faces[0].engine.count() == 1 })
	before := faces[0].scrapes()
	eventually(t, "the upstream is scraped meanwhile", func() bool { return faces[0].scrapes() >= before+3 })
	faces[0].engine.release()
	if a := <-done; a.status != 200 {
		t.Errorf("status %d", a.status)
	}
}

func init() { caddy.RegisterModule(source{}) }

// source is a dynamic source of upstreams, new objects each time, in an order
// that changes.
type source struct{}

var sourced struct {
	sync.Mutex
	dials []string
	calls int
}

// CaddyModule returns the Caddy module information.
func (source) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.reverse_proxy.upstreams.bench", New: func() caddy.Module { return new(source) }}
}

// UnmarshalCaddyfile implements caddyfile.Unmarshaler.
func (*source) UnmarshalCaddyfile(d *caddyfile.Dispenser) error { d.Next(); return nil }

// GetUpstreams implements reverseproxy.UpstreamSource.
func (*source) GetUpstreams(*http.Request) ([]*reverseproxy.Upstream, error) {
	sourced.Lock()
	defer sourced.Unlock()
	sourced.calls++
	var pool []*reverseproxy.Upstream
	for i := range sourced.dials {
		pool = append(pool, &reverseproxy.Upstream{Dial: sourced.dials[(i+sourced.calls)%len(sourced.dials)]})
	}
	return pool, nil
}

// FC-94: upstreams of a dynamic source are scraped as long as it offers them,
// each by one scraper, and keep their conversations.
func TestFC94DynamicUpstreams(t *testing.T) {
	faces := newFaces(t, 5)
	offer := func(faces []*face) {
		sourced.Lock()
		defer sourced.Unlock()
		sourced.dials = faceAddrs(faces)
	}
	offer(faces[:4])
	g := site{proxy: "dynamic bench"}.start(t)
	turn := func(conversation, n int) answer {
		t.Helper()
		messages := user(text(fmt.Sprint("talk", conversation), 3000))
		for i := range n {
			messages = append(messages, message{"user", fmt.Sprint(i)})
		}
		a := g.post("/v1/chat/completions", chat(messages, nil))
		if a.status != 200 {
			t.Fatalf("status %d: %.200s", a.status, a.body)
		}
		return a
	}
	homes := make([]string, 20)
	for c := range homes {
		homes[c] = turn(c, 1).engine
	}
	g.becomes(true, faceAddrs(faces[:4])...)
	offer(append(slices.Clone(faces[:3]), faces[4]))
	stayed, surviving := 0, 0
	for n := 2; n < 6; n++ {
		for c, home := range homes {
			a := turn(c, n)
			if home == faces[3].engine.name {
				homes[c] = a.engine
				continue
			}
			surviving++
			if a.engine == home {
				stayed++
			}
			homes[c] = a.engine
		}
	}
	if stayed*10 < surviving*9 {
		t.Errorf("%d of %d turns stayed with an upstream that is still offered, want 90 %%", stayed, surviving)
	}
	g.becomes(true, faces[4].addr)
	for _, f := range faces {
		f.mu.Lock()
		if f.most > 1 {
			t.Errorf("%s is scraped %d times at once", f.addr, f.most)
		}
		f.mu.Unlock()
	}
}

// FC-104: a source that a request points somewhere serves the request, but
// nobody is scraped for it, or a client could have a key sent anywhere.
func TestFC104ClientsCannotPointScrapesByASource(t *testing.T) {
	engines := newEngines(t, 2)
	g := site{
		policy: "metrics_header Authorization \"Bearer canary-key\"",
		proxy:  "dynamic a {\n name 127.0.0.1\n port {header.X-Port}\n versions ipv4\n refresh 1ms\n}",
	}.start(t)
	for i := range 8 {
		e := engines[i%2]
		_, port, _ := net.SplitHostPort(e.addr)
		a := g.send(http.MethodPost, "/v1/chat/completions", map[string]string{"X-Port": port}, chat(user(text("pointed", 2000)), nil))
		if a.status != 200 || a.engine != e.name {
			t.Fatalf("status %d of %q, want %s: %.200s", a.status, a.engine, e.name, a.body)
		}
	}
	g.idle()
	for _, e := range engines {
		if n := e.scraped(); n > 0 {
			t.Errorf("%s, which clients chose, is scraped %d times", e.name, n)
		}
	}
}
