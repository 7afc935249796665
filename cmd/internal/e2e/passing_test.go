package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// odd is a valid body that no encoder would write.
const odd = "{ \"seed\":9007199254740993,\n\t\"max_tokens\" : 4, \"temperature\": 1.0,\"top_p\":1e0 ,\"model\":\"bench\"," +
	"\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\",\"schema\":{\"type\":\"object\",\"properties\":{\"z\":{},\"a\":{},\"m\":{}}}}}," +
	"\"messages\":[{\"content\":\"<b>&\\u00e9\\/ é\",\"role\":\"user\"}]  }"

// FC-18: the body passes untouched, whatever its framing, also on a retry.
func TestFC18BodyPassesUntouched(t *testing.T) {
	engines := newEngines(t, 1)
	dead := deadAddress(t)
	for _, c := range []struct {
		name      string
		upstreams []string
		chunked   bool
	}{
		{"with a length", addrs(engines), false},
		{"chunked", addrs(engines), true},
		{"through retries", []string{dead, engines[0].addr}, false},
		{"chunked, through retries", []string{dead, engines[0].addr}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := site{upstreams: c.upstreams, proxy: "lb_retries 2"}.start(t)
			for range 8 { // of which some go to the dead upstream first
				var body io.Reader = strings.NewReader(odd)
				if c.chunked {
					body = io.MultiReader(body) // hides the length
				}
				req, err := http.NewRequest(http.MethodPost, "http://gateway/v1/chat/completions", body)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				a, err := g.do(req)
				if err != nil || a.status != 200 {
					t.Fatalf("status %d, %v: %s", a.status, err, a.body)
				}
				seen := engines[0].seen()
				last := seen[len(seen)-1]
				if sha256.Sum256(last.body) != sha256.Sum256([]byte(odd)) {
					t.Errorf("the engine read %q", last.body)
				}
				if last.length != int64(len(odd)) {
					t.Errorf("Content-Length is %d, want %d", last.length, len(odd))
				}
				if ce := last.header.Values("Content-Encoding"); ce != nil {
					t.Errorf("Content-Encoding is %q", ce)
				}
			}
		})
	}
}

// What carries no prompt, or one that can't be read, is served as by plain
// Caddy, and counted by reason.
func TestRequestsWithoutAReadablePrompt(t *testing.T) {
	engines := newEngines(t, 2)
	g := site{upstreams: addrs(engines), policy: "max_body 4KiB"}.start(t)
	big := chat(user(text("big", 20_000)), nil)
	for _, c := range []struct {
		name, method, path, body, encoding string
		status                             int
		reason                             string
	}{
		{"GET", "GET", "/v1/models", "", "", 200, "fallback:method"},
		{"unknown path", "POST", "/v1/unknown", `{"model":"bench"}`, "", 404, "fallback:path"},
		{"broken JSON", "POST", "/v1/chat/completions", `{"messages":[`, "", 400, "fallback:broken_json"},
		{"no prompt", "POST", "/v1/chat/completions", `{"model":"bench"}`, "", 400, "fallback:no_prompt"},
		{"no body", "POST", "/v1/chat/completions", "", "", 400, "fallback:no_body"},
		{"coded body", "POST", "/v1/chat/completions", "\x1f\x8b", "gzip", 400, "fallback:encoding"},
		{"prompt behind max_body", "POST", "/v1/chat/completions", `{"pad":"` + strings.Repeat(" ", 5000) + `",` + string(big[1:]), "", 200, "fallback:max_body"},
		{"over max_body", "POST", "/v1/chat/completions", string(big), "", 200, "reason=cold"},
		{"over max_body, again", "POST", "/v1/chat/completions", string(big), "", 200, "reason=prefix"},
	} {
		req, err := http.NewRequest(c.method, "http://gateway"+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if c.encoding != "" {
			req.Header.Set("Content-Encoding", c.encoding)
		}
		before := landed(engines, nil)
		a, err := g.do(req)
		if err != nil || a.status != c.status || !strings.Contains(a.route, c.reason) {
			t.Errorf("%s: status %d, %v, decision %q; want %d and %s\n%.300s", c.name, a.status, err, a.route, c.status, c.reason, a.body)
		}
		for i, n := range landed(engines, before) {
			seen := engines[i].seen()
			if n == 1 && !bytes.Equal(seen[len(seen)-1].body, []byte(c.body)) {
				t.Errorf("%s: the engine read another body", c.name)
			}
		}
		if why, ok := strings.CutPrefix(c.reason, "fallback:"); ok {
			if n, _ := g.metric("caddy_llm_prefix_fallbacks_total", `reason="`+why+`"`); n == 0 {
				t.Errorf("%s: not counted as %s", c.name, why)
			}
		}
	}
	g.idle()
}

// FC-76: a POST survives an upstream that refuses, resets before it answers,
// or resets in the middle of the body, if the user allows it; no upstream ever
// gets a part of a body.
func TestFC76PostSurvivesADeadUpstream(t *testing.T) {
	for _, size := range []int{5 << 10, 5 << 20} {
		body := chat(user(text("body", size)), map[string]any{"max_tokens": 1})
		for _, buffers := range []string{"", "request_buffers 16MiB\n"} {
			t.Run(fmt.Sprintf("refused, %d bytes, %q", size, buffers), func(t *testing.T) {
				good := newEngines(t, 1, bigModel)
				dead := deadAddress(t)
				g := site{upstreams: []string{dead, good[0].addr}, proxy: buffers + "lb_retries 2\nfail_duration 1m"}.start(t)
				for range 4 {
					a := g.post("/v1/chat/completions", body)
					if a.status != 200 {
						t.Fatalf("status %d: %.300s", a.status, a.body)
					}
				}
				wantWhole(t, good[0], body, 4)
			})
			for _, allowed := range []bool{true, false} {
				for _, read := range []int64{0, int64(size) / 2} {
					t.Run(fmt.Sprintf("reset after %d of %d bytes, allowed %v, %q", read, size, allowed, buffers), func(t *testing.T) {
						engines := newEngines(t, 2, bigModel)
						engines[0].fail(reset(read))
						proxy := buffers + "lb_retries 2"
						if allowed {
							proxy += "\nlb_retry_match {\n method POST\n}"
						}
						g := site{upstreams: addrs(engines), proxy: proxy, policy: "retry_stale off"}.start(t)
						failed := 0
						for range 4 {
							switch a := g.post("/v1/chat/completions", body); {
							case a.status == 200:
							case a.status == 502 && !allowed:
								failed++
							default:
								t.Errorf("status %d: %.300s", a.status, a.body)
							}
						}
						if failed > 2 {
							t.Errorf("%d of 4 requests failed: the resetting upstream attracts traffic", failed)
						}
						wantWhole(t, engines[1], body, 4-failed)
					})
				}
			}
		}
	}
}

func wantWhole(t *testing.T, e *engine, body []byte, n int) {
	t.Helper()
	seen := e.seen()
	if len(seen) != n {
		t.Errorf("%s saw %d requests, want %d", e.name, len(seen), n)
	}
	for i, s := range seen {
		if !bytes.Equal(s.body, body) || s.readErr != nil {
			t.Errorf("request %d: %s read %d bytes (%v), want %d", i, e.name, len(s.body), s.readErr, len(body))
		}
	}
}

// FC-77: a retry goes elsewhere, and an upstream that failed is not asked
// first for ever.
func TestFC77RetryGoesSomewhereElse(t *testing.T) {
	engines := newEngines(t, 3)
	g := site{upstreams: addrs(engines), proxy: "lb_retries 2"}.start(t)
	messages := user(text("conversation", 3000))
	first := g.post("/v1/chat/completions", chat(messages, nil))
	home := engines[first.engine[1]-'1']
	home.server.CloseClientConnections()
	home.server.Close()

	retried := 0
	for turn := range 20 {
		messages = append(messages, message{"assistant", "Yes."}, message{"user", text(fmt.Sprint(turn), 200)})
		a := g.post("/v1/chat/completions", chat(messages, nil))
		if a.status != 200 || a.engine == home.name {
			t.Fatalf("turn %d: status %d on %s: %s", turn, a.status, a.engine, a.body)
		}
		if a.attempt > 2 {
			t.Errorf("turn %d took %d attempts, want at most 2", turn, a.attempt)
		}
		if a.attempt > 1 {
			retried++
		}
	}
	if retried > 5 {
		t.Errorf("%d of 20 turns went to the dead upstream first", retried)
	}

	// What is not decided by a prompt is retried elsewhere too.
	resetting := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reset(0)(w, r) }))
	defer resetting.Close()
	other := newEngines(t, 1)
	g = site{upstreams: []string{resetting.Listener.Addr().String(), other[0].addr}, proxy: "lb_retries 2"}.start(t)
	for range 10 {
		if a := g.get("/v1/models"); a.status != 200 {
			t.Errorf("GET /v1/models: status %d", a.status)
		}
	}
}
