package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// What engines say before they compute is no first token: a response that was
// accepted still waits for its prefill, whatever its events tell.
func TestEventsBeforeTheFirstTokenAreNone(t *testing.T) {
	for _, c := range []struct{ path, kind, before, token string }{
		{
			"/v1/responses", "text/event-stream",
			"event: response.created\ndata: {\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\"},\"type\":\"response.created\"}\n\n" +
				"event: response.in_progress\ndata: {\"response\":{\"id\":\"resp_1\"},\"type\":\"response.in_progress\"}\n\n",
			"event: response.output_text.delta\ndata: {\"delta\":\"a\",\"type\":\"response.output_text.delta\"}\n\n",
		},
		{"/v1/messages", "text/event-stream", "event: ping\ndata: {\"type\":\"ping\"}\n\n", "event: message_start\ndata: {\"type\":\"message_start\"}\n\n"},
		{"/v1/chat/completions", "text/event-stream", ": keep-alive\r\n\r\n: keep-alive\r\n\r\n", sse("one")},
		{"/v1/completions", "text/plain", ": keep-alive\n\n", sse("one")},
		{"/llm/v1/chat/completions", "application/json", strings.Repeat(" \n", 500), `{"id":"x","choices":[]}`},
	} {
		t.Run(c.path, func(t *testing.T) {
			engines := newEngines(t, 1)
			d := engines[0].drips(c.kind)
			g := site{upstreams: addrs(engines)}.start(t)
			body := map[string]any{"model": model, "stream": true, "input": text("long", 3000)}
			if c.path != "/v1/responses" {
				body["messages"] = user(text("long", 3000))
				body["prompt"] = text("long", 3000)
			}
			res, errs := g.open(t.Context(), c.path, jsonOf(t, body), nil)
			d.header <- struct{}{}
			d.pieces <- c.before
			r := soon(t, "the header", res, errs)
			passed := make([]byte, len(c.before))
			if _, err := io.ReadFull(r.Body, passed); err != nil || string(passed) != c.before {
				t.Fatalf("%q passes, %v", passed, err)
			}
			if n, _ := g.metric("caddy_llm_prefix_inflight_requests", `phase="prefill"`); n != 1 {
				t.Errorf("%v requests wait for their first token, want this one", n)
			}
			d.pieces <- c.token
			eventually(t, "the first token is seen", func() bool {
				n, _ := g.metric("caddy_llm_prefix_inflight_requests", `phase="decode"`)
				return n == 1
			})
			close(d.pieces)
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
			r.Body.Close()
			g.idle()
			if n, _ := g.metric("caddy_llm_prefix_first_token_seconds_count"); n < 1 {
				t.Error("the first token wasn't timed")
			}
		})
	}
}

// An engine that answers 200 and says in the answer that there is none fails
// like one that says so by its status; it must not look like the fastest.
func TestErrorsWithStatus200AreFailures(t *testing.T) {
	for name, c := range map[string]struct{ kind, answer string }{
		"in a stream":          {"text/event-stream", `data: {"error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "code": 500}}` + "\n\ndata: [DONE]\n\n"},
		"in an older stream":   {"text/event-stream; charset=utf-8", `data: {"object": "error", "message": "no", "code": 503}` + "\n\n"},
		"of a full queue":      {"text/event-stream", `data: {"error": {"message": "The request queue is full.", "code": 429}}` + "\n\n"},
		"by an event's name":   {"text/event-stream", "event: error\r\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\r\n\r\n"},
		"behind a token":       {"text/event-stream", sse("one") + `data: {"error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "code": 500}}` + "\n\ndata: [DONE]\n\n"},
		"as a whole":           {"application/json", `{"error": "model runner has stopped"}`},
		"nothing in a stream":  {"text/event-stream", ": waits\n\n: waits\n\n"},
		"nothing in an answer": {"application/json", ""},
	} {
		t.Run(name, func(t *testing.T) {
			faces := newFaces(t, 2)
			broken, well := faces[0].engine, faces[1].engine
			broken.fail(func(w http.ResponseWriter, r *http.Request) bool {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("X-Engine", broken.name)
				_, _ = io.WriteString(w, c.answer)
				return true
			})
			g := site{upstreams: faceAddrs(faces)}.start(t)
			g.becomes(true, faceAddrs(faces)...)
			lost := 0
			for i := range 30 {
				a := g.post("/v1/chat/completions", chat(user(text(fmt.Sprint(name, i), 2000)), map[string]any{"stream": true}))
				switch {
				case a.status != 200:
					t.Fatalf("status %d: %.100q", a.status, a.body)
				case a.engine != broken.name:
				case a.body != c.answer:
					t.Fatalf("%q reaches the client as %q", c.answer, a.body)
				default:
					lost++
				}
			}
			if lost > 5 || well.count() < 25 {
				t.Errorf("%d of 30 prompts went where all fail, want a few to see", lost)
			}
			g.idle()
		})
	}
}

// An error of the client's in an answer of status 200 says nothing of the
// engine, and nothing was computed.
func TestRefusalsWithStatus200AreTheClients(t *testing.T) {
	faces := newFaces(t, 2)
	g := site{upstreams: faceAddrs(faces)}.start(t)
	g.becomes(true, faceAddrs(faces)...)
	for _, f := range faces {
		f.engine.fail(func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"error": {"message": "The input is too long.", "type": "BadRequestError", "code": 400}}`+"\n\n")
			return true
		})
	}
	for i := range 20 {
		if a := g.post("/v1/chat/completions", chat(user(text(fmt.Sprint("too long", i), 9000)), map[string]any{"stream": true})); !strings.Contains(a.body, "too long") {
			t.Fatalf("%d %q", a.status, a.body)
		}
	}
	if n, _ := g.metric("caddy_llm_prefix_index_entries"); n != 0 {
		t.Errorf("%v blocks of prompts are remembered that no engine computed", n)
	}
	for _, f := range faces {
		f.engine.fail(nil)
	}
	for i, n := range g.cold("fair", 40, faces) {
		if n < 2 {
			t.Errorf("%s gets %d of 40 prompts, want about 20", faces[i].addr, n)
		}
	}
	g.idle()
}

// Java's client offers HTTP/2 with each request, and its prompts are prompts.
func TestOffersOfHTTP2AreNoUpgrades(t *testing.T) {
	engines := newEngines(t, 3)
	g := site{upstreams: addrs(engines)}.start(t)
	java := map[string]string{"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA"}
	body := chat(user(text("java", 3000)), nil)
	home := g.send(http.MethodPost, "/v1/chat/completions", java, body).engine
	for range 6 {
		if a := g.send(http.MethodPost, "/v1/chat/completions", java, body); a.status != 200 || a.engine != home || !strings.Contains(a.route, "reason=prefix") {
			t.Errorf("status %d of %s by %q, want %s for its prefix", a.status, a.engine, a.route, home)
		}
	}
	// What is no offer, and what no connection was told of, are as before.
	if a := g.send(http.MethodPost, "/v1/chat/completions", map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"}, body); !strings.Contains(a.route, "fallback:upgrade") {
		t.Errorf("a websocket goes by %q", a.route)
	}
	g.idle()
}
