package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// leave sends a request and leaves when the engine has it, or, with afterFirst,
// when the first bytes of the answer have come.
func (g *gateway) leave(ctx context.Context, client *http.Client, body []byte, afterFirst bool, e *engine) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gateway/v1/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if !afterFirst {
		before := e.count()
		go func() { // ends when the engine has the request, or with the test
			defer cancel()
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for e.count() == before {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	res, err := client.Do(req)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
	defer res.Body.Close()
	_, err = bufio.NewReader(res.Body).ReadString('\n')
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// quiet waits until neither the engine nor the gateway counts the request.
func quiet(t *testing.T, g *gateway, engines ...*engine) {
	t.Helper()
	for _, e := range engines {
		eventually(t, e.name+" has nothing running or waiting", func() bool {
			return e.gauge(t, "vllm:num_requests_running") == 0 && e.gauge(t, "vllm:num_requests_waiting") == 0
		})
	}
	g.idle()
}

// FC-79: a client that leaves frees engine and gateway at once, and is nobody's
// failure.
func TestFC79ClientLeavesDuringPrefill(t *testing.T) {
	engines := newEngines(t, 1, slowModel)
	g := site{upstreams: addrs(engines), proxy: "fail_duration 1m\nlb_retries 2"}.start(t)
	long := func(stream bool) []byte {
		return chat(user(text("long", 40_000)), map[string]any{"stream": stream, "max_tokens": 100})
	}
	h2 := &http.Client{Transport: func() http.RoundTripper {
		tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return g.dial(ctx) }}
		tr.Protocols = new(http.Protocols)
		tr.Protocols.SetUnencryptedHTTP2(true)
		return tr
	}()}
	defer h2.CloseIdleConnections()
	for _, c := range []struct {
		name   string
		client *http.Client
		stream bool
	}{{"streamed", g.client, true}, {"unstreamed", g.client, false}, {"HTTP/2", h2, true}} {
		before := engines[0].count()
		if err := g.leave(t.Context(), c.client, long(c.stream), false, engines[0]); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		quiet(t, g, engines[0])
		seen := engines[0].seen()
		if len(seen) != before+1 {
			t.Errorf("%s: the engine saw %d requests, want 1", c.name, len(seen)-before)
		}
		eventually(t, "the engine sees the client's leaving", func() bool { return engines[0].seen()[before].gone })
	}

	// A client that shuts its side and waits has left, as for Caddy.
	before := engines[0].count()
	conn, err := g.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := long(true)
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	eventually(t, "the engine has the request", func() bool { return engines[0].count() > before })
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the engine sees a half-closed connection", func() bool { return engines[0].seen()[before].gone })
	quiet(t, g, engines[0])

	// While the body is being read, no engine is troubled.
	before = engines[0].count()
	if conn, err = g.dial(t.Context()); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"model\"")
	conn.Close()
	eventually(t, "five requests are logged", func() bool { return len(g.logged("handled request", "/v1/chat/completions")) == 5 })
	if n := engines[0].count() - before; n != 0 {
		t.Errorf("a body that was never sent whole reached the engine %d times", n)
	}
	// Engines send the header of a stream before its first token, so streams
	// may be logged with the status that the client saw.
	left := len(g.logged("handled request", "/v1/chat/completions", `"status":499`))
	begun := len(g.logged("handled request", "/v1/chat/completions", `"status":200`))
	if left < 2 || left+begun != 5 {
		t.Errorf("%d requests are logged with status 499 and %d with 200, want 5 in all and at least the two unstreamed with 499", left, begun)
	}
	// Nobody failed: with fail_duration, a failure would leave no upstream.
	if a := g.post("/v1/chat/completions", chat(user("Hello."), nil)); a.status != 200 || a.attempt != 1 {
		t.Errorf("afterwards: status %d, attempt %d", a.status, a.attempt)
	}
	quiet(t, g, engines[0])
}

// A thousand clients leave in the middle of their streams: nothing of them is
// left running, waiting or counted.
func TestAThousandClientsLeaveMidStream(t *testing.T) {
	engines := newEngines(t, 3, realTime)
	g := site{upstreams: addrs(engines)}.start(t)
	var clients sync.WaitGroup
	slots := make(chan struct{}, 100)
	for i := range 1000 {
		clients.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			body := chat(user(text(fmt.Sprint(i%50), 600)), map[string]any{"stream": true, "max_tokens": 5000, "ignore_eos": true})
			if err := g.leave(t.Context(), g.client, body, true, nil); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	clients.Wait()
	quiet(t, g, engines...)
	for _, e := range engines {
		if usage := e.gauge(t, "vllm:kv_cache_usage_perc"); usage != 0 {
			t.Errorf("%s still holds %v of its KV blocks", e.name, usage)
		}
	}
}

// FC-88: reloads leave no workers behind, and failed ones neither.
func TestFC88ReloadsLeaveNoWorkersBehind(t *testing.T) {
	engines := newEngines(t, 2)
	// Caddy loses a socket file when a reload fails, not a port.
	g := site{upstreams: addrs(engines), tcp: true}.start(t)
	g.post("/v1/chat/completions", chat(user(text("kept", 2000)), nil))
	other := strings.Replace(g.text, "expose X-LLM", "expose X-LLM\n max_body 4MiB", 1)
	taken := listen(t)
	defer taken.Close()
	failing := g.text + fmt.Sprintf("http://%s {\n respond ok\n}\n", taken.Addr())

	reload := func(text string, fails bool) {
		t.Helper()
		if err := load(text); (err != nil) != fails {
			t.Fatalf("reload: %v, want an error: %v", err, fails)
		}
	}
	reload(other, false)
	reload(g.text, false)
	start := runtime.NumGoroutine()
	for i := range 100 {
		reload(failing, true)
		for range 2 {
			reload(other, false)
			reload(g.text, false)
		}
		if i%25 != 0 {
			continue
		}
		// Scraping goes on, and each upstream has one connection for it.
		before := engines[0].scraped()
		eventually(t, "the upstream is still scraped", func() bool { return engines[0].scraped() > before })
	}
	eventually(t, "the goroutines of old configs have ended", func() bool { return runtime.NumGoroutine() <= start+20 })
	g.onePoller()

	// What was learned is still known.
	if a := g.insist("/v1/chat/completions", chat(append(user(text("kept", 2000)), message{"user", "And?"}), nil)); !strings.Contains(a.route, "reason=prefix") {
		t.Errorf("after 500 reloads a known prompt is decided by %q", a.route)
	}
	g.idle()
}

func goroutinesIn(function string) int {
	buf := make([]byte, 4<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), function+"(")
}

// onePoller waits until one poller is there. That of a config before may be about
// to end.
func (g *gateway) onePoller() {
	g.t.Helper()
	eventually(g.t, "one poller runs", func() bool { return goroutinesIn("scrape.(*Poller).Run") == 1 })
}

// Nothing is left when the last config is gone.
func TestStopLeavesNothing(t *testing.T) {
	engines := newEngines(t, 1)
	g := site{upstreams: addrs(engines)}.start(t)
	g.post("/v1/chat/completions", chat(user("Hello."), nil))
	g.client.CloseIdleConnections()
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the poller has ended", func() bool { return goroutinesIn("scrape.(*Poller).Run") == 0 })
}

// A stream goes on while the config it began under is replaced, and is
// released when it ends.
func TestStreamOutlivesAReload(t *testing.T) {
	engines := newEngines(t, 1)
	g := site{upstreams: addrs(engines)}.start(t)
	engines[0].hold()
	done := make(chan answer, 1)
	go func() { done <- g.post("/v1/chat/completions", chat(user("Hello."), map[string]any{"stream": true})) }() // ends below
	eventually(t, "the request has arrived", func() bool { return engines[0].count() == 1 })
	if err := load(strings.Replace(g.text, "expose X-LLM", "expose X-LLM\n max_body 4MiB", 1)); err != nil {
		t.Fatal(err)
	}
	if n, _ := g.metric("caddy_llm_prefix_inflight_requests"); n != 1 {
		t.Errorf("%v requests in flight after the reload, want 1", n)
	}
	engines[0].release()
	if a := <-done; a.status != 200 || !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
		t.Errorf("the stream ended with status %d: %.200s", a.status, a.body)
	}
	g.idle()
}

// FC-102: no text of a request or an answer, and no key, in any log or metric.
func TestFC102PromptsAreNeverLogged(t *testing.T) {
	engines := newEngines(t, 2)
	g := site{upstreams: addrs(engines), proxy: "lb_retries 2\nlb_retry_match {\n method POST\n}", policy: "max_body 8KiB", asked: true}.start(t)
	body := func(more map[string]any) []byte {
		more["user"], more["prompt_cache_key"], more["cache_salt"] = canary+"user", canary+"key", canary+"salt"
		return chat([]message{
			{"system", canary + "system " + text("s", 600)},
			{"user", []any{
				map[string]any{"type": "text", "text": canary + "text"},
				map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64," + canary}},
			}},
		}, more)
	}
	ok := g.post("/v1/chat/completions", body(map[string]any{"stream": true}))
	if ok.status != 200 {
		t.Fatalf("status %d: %s", ok.status, ok.body)
	}
	g.post("/v1/chat/completions", body(map[string]any{"max_tokens": canary}))           // refused by the engine
	g.post("/v1/chat/completions", []byte(`{"messages":[{"content":"`+canary+`broken"`)) // bad JSON
	g.post("/v1/chat/completions", []byte(`{"`+canary+`":1}`))                           // no prompt
	g.post("/v1/chat/completions", chat(user(canary+text("big", 20_000)), nil))          // over max_body
	engines[0].fail(reset(10))                                                           // provokes retries
	for range 4 {
		g.post("/v1/chat/completions", body(map[string]any{}))
	}
	engines[1].fail(reset(10))
	g.post("/v1/chat/completions", body(map[string]any{})) // fails everywhere
	g.idle()

	log, err := os.ReadFile(g.log)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.logged("handled request")) < 10 || len(g.logged(`"llm_prefix":{`)) < 9 {
		t.Fatal("the access log lacks requests: this test would see nothing")
	}
	if !strings.Contains(string(log), `"level":"debug"`) {
		t.Fatal("the log has no debug lines: this test would see nothing")
	}
	for name, text := range map[string]string{"log": string(log), "metrics": g.get("/gateway/metrics").body} {
		for line := range strings.Lines(text) {
			if strings.Contains(line, canary) {
				t.Errorf("%s: %.400s", name, line)
			}
		}
	}
}
