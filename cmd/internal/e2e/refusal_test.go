package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// status is a fault: the answer is this, and the body is not read.
func status(code int, header ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		http.Error(w, `{"error":{"message":"no","code":`+strconv.Itoa(code)+`}}`, code)
		return true
	}
}

// FC-82: what engines refuse as the client's fault, or send elsewhere, neither
// harms nor favours them, and leaves no trace of a prompt.
func TestFC82ClientErrorsAreTheClients(t *testing.T) {
	faces := newFaces(t, 4, func(o *simOptions) { o.maxModelLen = 2048 })
	g := site{upstreams: faceAddrs(faces), proxy: "lb_retries 3\nfail_duration 1m"}.start(t)
	g.becomes(true, faceAddrs(faces)...)
	for i := range 30 {
		a := g.post("/v1/chat/completions", chat(user(text("long", 40_000)), map[string]any{"seed": i}))
		if a.status != 400 || a.attempt != 1 {
			t.Fatalf("a prompt that is too long: status %d at attempt %d, want the engine's 400", a.status, a.attempt)
		}
	}
	for i, code := range []int{401, 404, 422, 499, 403, 413, 501, 302, 307} {
		for _, f := range faces {
			f.engine.fail(status(code))
		}
		if a := g.post("/v1/chat/completions", chat(user(text(fmt.Sprint("refused", i), 4000)), nil)); a.status != code || a.attempt != 1 {
			t.Errorf("status %d at attempt %d, want the engine's %d at once", a.status, a.attempt, code)
		}
	}
	for _, f := range faces {
		f.engine.fail(nil)
	}
	if n, _ := g.metric("caddy_llm_prefix_index_entries"); n != 0 {
		t.Errorf("%v blocks of prompts are remembered that no engine computed", n)
	}
	for i, n := range g.cold("fair", 60, faces) {
		if n < 1 || n > 35 {
			t.Errorf("%s gets %d of 60 prompts, want about 15", faces[i].addr, n)
		}
	}
	g.idle()
}

// FC-83: 429 and 503 reach the client as they are, and the engine is left alone
// for as long as it asks. When that is over is shown where the clock is virtual.
func TestFC83EngineAsksToBeLeftAlone(t *testing.T) {
	for _, c := range []struct {
		code  int
		after string
	}{{429, "30"}, {503, "30"}} {
		t.Run(strconv.Itoa(c.code), func(t *testing.T) {
			faces := newFaces(t, 2)
			g := site{upstreams: faceAddrs(faces)}.start(t)
			shared := text("warm", 3000)
			home := g.post("/v1/chat/completions", chat(user(shared), nil)).engine
			var at, other *face
			for _, f := range faces {
				if f.engine.name == home {
					at = f
				} else {
					other = f
				}
			}
			at.engine.fail(status(c.code, "Retry-After", c.after))
			req, err := http.NewRequest(http.MethodPost, "http://gateway/v1/chat/completions", strings.NewReader(string(chat(user(shared), nil))))
			if err != nil {
				t.Fatal(err)
			}
			res, err := g.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != c.code || res.Header.Get("Retry-After") != c.after || !strings.Contains(string(body), `"no"`) {
				t.Errorf("the client sees %d, Retry-After %q, %q", res.StatusCode, res.Header.Get("Retry-After"), body)
			}
			// Neither what is warm there nor what is cold goes there now.
			for i := range 10 {
				a := g.post("/v1/chat/completions", chat(user(text(fmt.Sprint("cold", i%2*i), 3000)), nil))
				if a.status != 200 || a.engine != other.engine.name {
					t.Fatalf("prompt %d: status %d of %q, want 200 of %s", i, a.status, a.engine, other.engine.name)
				}
			}
			g.idle()
		})
	}

	// Where the operator has refusals retried, the next one gets the whole body.
	engines := newEngines(t, 2)
	g := site{upstreams: addrs(engines), proxy: "lb_retries 2\nlb_retry_match {\n expression `{rp.status_code} in [429, 503]`\n}"}.start(t)
	for i, after := range []string{"999999", "-1", "Fri, 01 Jan 2044 00:00:00 GMT", "soon"} {
		e := engines[i%2]
		e.fail(status(429, "Retry-After", after))
		for n := range 4 {
			sent := chat(user(text(fmt.Sprint("moved", i, n), 5000)), nil)
			a := g.post("/v1/chat/completions", sent)
			if a.status != 200 || a.engine == e.name {
				t.Fatalf("Retry-After %s: status %d of %s", after, a.status, a.engine)
			}
			seen := engines[1-i%2].seen()
			if got := seen[len(seen)-1]; string(got.body) != string(sent) || got.length != int64(len(sent)) {
				t.Errorf("Retry-After %s: %d bytes of %d reached the second engine", after, len(got.body), len(sent))
			}
		}
		e.fail(nil)
	}
	g.idle()
}

// sse is an event of a chat's stream.
func sse(content string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"` + content + `"},"finish_reason":null}]}` + "\n\n"
}

// FC-85: once bytes went out there is no second try, whatever becomes of the
// stream: the client has a part of one answer and sees that it is torn.
func TestFC85NoSecondTryOnceBytesWentOut(t *testing.T) {
	engines := newEngines(t, 2)
	g := site{upstreams: addrs(engines), proxy: "lb_retries 3\nlb_try_duration 5s\nlb_retry_match {\n method POST\n}"}.start(t)
	shared := text("conversation", 3000)
	home := g.post("/v1/chat/completions", chat(user(shared), nil)).engine
	at := engines[0]
	if home != at.name {
		at = engines[1]
	}
	turn := func() (string, error) {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, "http://gateway/v1/chat/completions", strings.NewReader(string(chat(user(shared), map[string]any{"stream": true}))))
		if err != nil {
			t.Fatal(err)
		}
		a, err := g.do(req)
		return a.body, err
	}
	var requests atomic.Int64
	stream := func(then func(w http.ResponseWriter, r *http.Request)) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			requests.Add(1)
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("X-Engine", "broken")
			for i := range 40 {
				_, _ = io.WriteString(w, sse(fmt.Sprint("t", i)))
			}
			w.(http.Flusher).Flush()
			then(w, r)
			return true
		}
	}
	both := func(f func(http.ResponseWriter, *http.Request) bool) {
		for _, e := range engines {
			e.fail(f)
		}
	}
	var want strings.Builder
	for i := range 40 {
		want.WriteString(sse(fmt.Sprint("t", i)))
	}

	// A broken event is the client's to read; it passes, and is held against
	// nobody.
	both(stream(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: {broken\n\ndata: [DONE]\n\n")
	}))
	if got, err := turn(); err != nil || got != want.String()+"data: {broken\n\ndata: [DONE]\n\n" {
		t.Errorf("a broken event: %v, %d bytes", err, len(got))
	}
	both(nil)
	if a := g.post("/v1/chat/completions", chat(user(shared), nil)); a.engine != at.name {
		t.Errorf("a broken event is held against %s", at.name)
	}

	for name, then := range map[string]func(http.ResponseWriter, *http.Request){
		"reset": func(w http.ResponseWriter, r *http.Request) { reset(0)(w, r) },
		"end":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		requests.Store(0)
		both(stream(then))
		got, err := turn()
		if err == nil || !strings.HasPrefix(want.String(), got) || strings.Contains(got, "[DONE]") {
			t.Errorf("%s: the client sees the end %v of %d bytes, want a torn part of %d", name, err, len(got), want.Len())
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("%s: %d requests reached engines, want 1", name, n)
		}
		both(nil)
		g.idle()
	}
	// That was a failure of the engine, and it is left alone for a moment.
	if a := g.post("/v1/chat/completions", chat(user(shared), nil)); a.status != 200 {
		t.Errorf("afterwards: status %d", a.status)
	}

	// A stall is ended by who waits for it.
	stalled := make(chan struct{})
	requests.Store(0)
	both(stream(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(stalled)
	}))
	if err := g.leave(t.Context(), g.client, chat(user(shared), map[string]any{"stream": true}), true, nil); err != nil {
		t.Fatal(err)
	}
	<-stalled
	if n := requests.Load(); n != 1 {
		t.Errorf("a stalled stream: %d requests reached engines, want 1", n)
	}
	g.idle()
}
