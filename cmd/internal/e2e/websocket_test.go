package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// FC-101: a connection that becomes a websocket, as vLLM's /v1/realtime does,
// passes both ways for as long as it lasts, on a path of prompts too, and leaves
// nothing behind.
func TestFC101WebsocketsPass(t *testing.T) {
	engines := newEngines(t, 2)
	for _, e := range engines {
		e.fail(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
				return false
			}
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return true
			}
			defer conn.Close()
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			_, _ = io.Copy(conn, rw) // says again what it is told
			return true
		})
	}
	g := site{upstreams: addrs(engines)}.start(t)
	for _, path := range []string{"/v1/realtime", "/v1/chat/completions"} {
		conn, err := g.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: gateway\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", path)
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil || res.StatusCode != http.StatusSwitchingProtocols || !strings.Contains(res.Header.Get("X-LLM"), "fallback:method") {
			t.Fatalf("%s: %v, %v", path, res, err)
		}
		for i := range 5 {
			said := fmt.Sprintf("frame %d\n", i)
			if _, err := io.WriteString(conn, said); err != nil {
				t.Fatal(err)
			}
			if heard, err := in.ReadString('\n'); err != nil || heard != said {
				t.Fatalf("%s: %q comes back as %q, %v", path, said, heard, err)
			}
		}
		conn.Close()
	}
	eventually(t, "both connections are over", func() bool { return len(g.logged("handled request", "websocket")) == 2 })
	if a := g.post("/v1/chat/completions", chat(user(text("after", 2000)), nil)); a.status != 200 || !strings.Contains(a.route, "reason=cold") {
		t.Errorf("a prompt comes to status %d by %q", a.status, a.route)
	}
	g.idle()
}
