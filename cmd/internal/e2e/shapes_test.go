package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// answer makes the engine say yes to anything, in place of the simulator.
func (e *engine) answer(f func(w http.ResponseWriter, r *http.Request, body []byte)) {
	e.fail(func(w http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		e.note(entry{method: r.Method, path: r.URL.Path, header: r.Header.Clone(), length: r.ContentLength, body: body, readErr: err})
		w.Header().Set("X-Engine", e.name)
		w.Header().Set("Content-Type", "application/json")
		f(w, r, body)
		return true
	})
}

func yes(w http.ResponseWriter, _ *http.Request, _ []byte) { _, _ = io.WriteString(w, `{"ok":true}`) }

// send is post with more headers.
func (g *gateway) send(method, path string, header map[string]string, body []byte) answer {
	g.t.Helper()
	req, err := http.NewRequest(method, "http://gateway"+path, bytes.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	a, err := g.do(req)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// jsonOf is a value as JSON.
func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

type object = map[string]any

// FC-05, FC-07, FC-08, FC-10 (a), (b): conversations of every API grow turn by
// turn and stay where they began.
func TestFC05FC07FC08FC10EveryAPIsConversationsStayTogether(t *testing.T) {
	engines := agreeable(t, 3)
	g := site{upstreams: addrs(engines)}.start(t)
	system := text("system", 6000)
	shapes := []struct {
		name, path string
		body       func(turn int, turns []any) object
		turn       func(i int) []any
	}{
		{"FC-05 an agent's chat", "/v1/chat/completions", func(_ int, turns []any) object {
			return object{"messages": append([]any{object{"role": "developer", "content": system}}, turns...)}
		}, func(i int) []any {
			call := object{"role": "assistant", "tool_calls": []any{object{"id": fmt.Sprint("c", i), "type": "function", "function": object{"name": "f", "arguments": fmt.Sprintf(`{"n":%d}`, i)}}}}
			if i%2 == 0 {
				call["content"] = nil
			}
			return []any{object{"role": "user", "content": text(fmt.Sprint("u", i), 400)}, call,
				object{"role": "tool", "tool_call_id": fmt.Sprint("c", i), "content": []any{object{"type": "text", "text": text(fmt.Sprint("r", i), 400)}}}}
		}},
		{"FC-07 messages", "/v1/messages", func(turn int, turns []any) object {
			if turn%2 == 0 {
				return object{"system": system, "messages": turns}
			}
			return object{"system": []any{object{"type": "text", "text": system}}, "messages": turns}
		}, func(i int) []any {
			return []any{object{"role": "user", "content": text(fmt.Sprint("m", i), 400)}, object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": "t", "name": "ls", "input": object{"i": i}}}}}
		}},
		{"FC-08 a billing line", "/v1/messages", func(turn int, turns []any) object {
			line := fmt.Sprintf("x-anthropic-billing-header: cc_version=2.1.%d; cc_entrypoint=cli; cch=%05d;", turn, turn*7919)
			return object{"system": []any{object{"type": "text", "text": line}, object{"type": "text", "text": system}}, "messages": turns}
		}, func(i int) []any {
			return []any{object{"role": "user", "content": text(fmt.Sprint("b", i), 400)}, object{"role": "assistant", "content": "yes"}}
		}},
		{"FC-10 responses", "/v1/responses", func(_ int, turns []any) object { return object{"instructions": system, "input": turns} }, func(i int) []any {
			return []any{object{"type": "message", "role": "user", "content": []any{object{"type": "input_text", "text": text(fmt.Sprint("i", i), 400)}}},
				object{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, object{"type": "function_call_output", "call_id": "c", "output": fmt.Sprint(i)}}
		}},
	}
	for _, s := range shapes {
		var turns []any
		home := ""
		for i := range 6 {
			turns = append(turns, s.turn(i)...)
			body := s.body(i, turns)
			body["model"] = model
			sent := jsonOf(t, body)
			a := g.post(s.path, sent)
			if home == "" {
				home = a.engine
			}
			if a.status != 200 || a.engine != home || i > 0 && !strings.Contains(a.route, "reason=prefix") {
				t.Errorf("%s, turn %d: status %d on %s by %q, want prefix on %s", s.name, i, a.status, a.engine, a.route, home)
			}
			seen := engines[home[1]-'1'].seen()
			if !bytes.Equal(seen[len(seen)-1].body, sent) {
				t.Errorf("%s, turn %d: the engine read another body", s.name, i)
			}
		}
	}
	g.idle()
}

// FC-10 (c): a turn that goes on from a response goes to the upstream that
// issued it, and so does whatever asks for it by its path.
func TestFC10PreviousResponseGoesToItsIssuer(t *testing.T) {
	engines := newEngines(t, 3)
	for _, e := range engines {
		e.answer(func(w http.ResponseWriter, r *http.Request, body []byte) {
			id := fmt.Sprintf("resp_%s_%d", e.name, e.count())
			if bytes.Contains(body, []byte(`"stream":true`)) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":%q,\"object\":\"response\"}}\n\ndata: [DONE]\n\n", id)
				return
			}
			fmt.Fprintf(w, `{"id":%q,"object":"response"}`, id)
		})
	}
	g := site{upstreams: addrs(engines), proxy: "lb_retries 2"}.start(t)
	idOf := func(a answer) string {
		_, after, _ := strings.Cut(a.body, `"id":"`)
		id, _, _ := strings.Cut(after, `"`)
		return id
	}
	for i := range 12 {
		first := g.post("/v1/responses", jsonOf(t, object{"model": model, "input": text(fmt.Sprint("fresh", i), 800), "stream": i%2 == 0}))
		id := idOf(first)
		for range 3 { // each goes on from the one before
			a := g.post("/v1/responses", jsonOf(t, object{"model": model, "previous_response_id": id, "input": "and then?"}))
			if a.engine != first.engine || !strings.Contains(a.route, "reason=session") {
				t.Errorf("response %s of %s: the next turn went to %s by %q", id, first.engine, a.engine, a.route)
			}
			for method, path := range map[string]string{"GET": "/v1/responses/" + id, "POST": "/v1/responses/" + id + "/cancel"} {
				if a := g.send(method, path, nil, nil); a.engine != first.engine {
					t.Errorf("%s %s went to %s by %q, want %s", method, path, a.engine, a.route, first.engine)
				}
			}
			id = idOf(a)
		}
	}
	if a := g.post("/v1/responses", jsonOf(t, object{"model": model, "previous_response_id": "resp_of_nobody", "input": "and?"})); a.status != 200 {
		t.Errorf("an unknown response: status %d", a.status)
	}
	// The issuer is gone: any other may say that it doesn't know the response.
	first := g.post("/v1/responses", jsonOf(t, object{"model": model, "input": "hello there"}))
	engines[first.engine[1]-'1'].server.CloseClientConnections()
	engines[first.engine[1]-'1'].server.Close()
	if a := g.post("/v1/responses", jsonOf(t, object{"model": model, "previous_response_id": idOf(first), "input": "and?"})); a.status != 200 || a.engine == first.engine {
		t.Errorf("the issuer is gone: status %d on %s", a.status, a.engine)
	}
	g.idle()
}

// FC-09: prompts that begin with a clock share nothing; they are spread, and
// stable conversations between them stay together, though the index has no room for
// all. With session_header, each session stays together.
func TestFC09ClockAtTheFront(t *testing.T) {
	const requests, conversations = 1000, 50
	engines := newEngines(t, 4)
	for _, e := range engines {
		e.answer(yes)
		e.show(quietPage(0, 0))
	}
	system := text("6", 8000)
	clock := func(i int) []byte {
		return chat([]message{
			{"system", fmt.Sprintf("It is %02d:%02d:%02d.%03d. ", i/60%24, i%60, i*7%60, i*13%1000) + system},
			{"user", text(fmt.Sprint("conversation", i%conversations), 200)},
		}, nil)
	}
	g := site{upstreams: addrs(engines), policy: "memory 1MiB"}.start(t)
	homes := make([]string, 5)
	got := make(map[string]int)
	for i := range requests {
		a := g.post("/v1/chat/completions", clock(i))
		if a.status != 200 {
			t.Fatalf("status %d", a.status)
		}
		got[a.engine]++
		if i%10 != 0 {
			continue
		}
		k := i / 10 % len(homes)
		a = g.post("/v1/chat/completions", chat(append(user(text(fmt.Sprint("stable", k), 3000)), message{"user", fmt.Sprint(i)}), nil))
		if homes[k] == "" {
			homes[k] = a.engine
		}
		if a.engine != homes[k] {
			t.Errorf("stable conversation %d moved from %s to %s by %q", k, homes[k], a.engine, a.route)
		}
	}
	for _, e := range engines {
		if n := got[e.name]; n < 150 || n > 350 {
			t.Errorf("%s got %d of %d requests without anything in common", e.name, n, requests)
		}
	}
	taken, _ := g.metric("caddy_llm_prefix_index_bytes")
	limit, _ := g.metric("caddy_llm_prefix_index_limit_bytes")
	if evicted, _ := g.metric("caddy_llm_prefix_index_evictions_total"); taken > limit || limit > 1<<20 || evicted == 0 {
		t.Errorf("the index has taken %v bytes of %v, and %v blocks gave way", taken, limit, evicted)
	}
	g.idle()

	g = site{upstreams: addrs(engines), policy: "state sessions\nsession_header X-Session-Id"}.start(t)
	before := landed(engines, nil)
	home := make(map[int]string)
	for i := range requests {
		k := i % conversations
		a := g.send("POST", "/v1/chat/completions", map[string]string{"X-Session-Id": fmt.Sprint("conv-", k)}, clock(i))
		if home[k] == "" {
			home[k] = a.engine
		}
		if a.status != 200 || a.engine != home[k] {
			t.Errorf("session %d: status %d on %s by %q, began on %s", k, a.status, a.engine, a.route, home[k])
		}
	}
	for i, n := range landed(engines, before) {
		if n < 75 {
			t.Errorf("%s got %d of %d requests: sessions are not spread", engines[i].name, n, requests)
		}
	}
	g.idle()
}

// FC-11: coded bodies have the affinity of plain ones and pass as they came;
// what can't be decoded goes by load.
func TestFC11CompressedBodies(t *testing.T) {
	engines := agreeable(t, 3)
	g := site{upstreams: addrs(engines)}.start(t)
	plain := chat(user(text("coded", 40_000)), nil)
	squeeze := func(w func(io.Writer) io.WriteCloser, text []byte) []byte {
		var b bytes.Buffer
		c := w(&b)
		if _, err := c.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	gz := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	br := func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }
	zs := func(w io.Writer) io.WriteCloser {
		z, err := zstd.NewWriter(w)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	home := g.post("/v1/chat/completions", plain).engine
	damaged := squeeze(zs, plain)
	damaged[len(damaged)/2] ^= 0x55
	for _, c := range []struct {
		coding string
		body   []byte
		known  bool
	}{
		{"gzip", squeeze(gz, plain), true}, {"zstd", squeeze(zs, plain), true}, {"br", squeeze(br, plain), true},
		{"gzip, zstd", squeeze(zs, squeeze(gz, plain)), true}, {"identity", plain, true},
		{"foo", plain, false}, {"zstd", damaged, false}, {"zstd", []byte("not zstd"), false}, {"gzip", nil, false},
	} {
		for range 5 {
			before := landed(engines, nil)
			a := g.send("POST", "/v1/chat/completions", map[string]string{"Content-Encoding": c.coding}, c.body)
			if a.status != 200 || c.known && (a.engine != home || !strings.Contains(a.route, "reason=prefix")) || !c.known && !strings.Contains(a.route, "reason=fallback:") {
				t.Errorf("%s, %d bytes: status %d on %s by %q; the plain one is at %s", c.coding, len(c.body), a.status, a.engine, a.route, home)
			}
			for i, n := range landed(engines, before) {
				if n == 0 {
					continue
				}
				seen := engines[i].seen()
				last := seen[len(seen)-1]
				if !bytes.Equal(last.body, c.body) || !slices.Equal(last.header.Values("Content-Encoding"), []string{c.coding}) {
					t.Errorf("%s: the engine read %d bytes coded %v, want %d", c.coding, len(last.body), last.header.Values("Content-Encoding"), len(c.body))
				}
			}
		}
	}
	if n, _ := g.metric("caddy_llm_prefix_fallbacks_total", `reason="encoding"`); n < 15 {
		t.Errorf("%v fallbacks for their encoding, want 15", n)
	}
	g.idle()
}

// FC-101: what carries no prompt is spread by load and never our error; what
// isn't generated leaves the index alone.
func TestFC101RoutesWithoutAPrompt(t *testing.T) {
	engines := newEngines(t, 4)
	for _, e := range engines {
		e.answer(yes)
		e.show(quietPage(0, 0))
	}
	g := site{upstreams: addrs(engines)}.start(t)
	entries := func() float64 {
		n, _ := g.metric("caddy_llm_prefix_index_entries")
		return n
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "DELETE"} {
		if a := g.send(method, "/v1/chat/completions", nil, nil); a.status != 200 {
			t.Errorf("%s: status %d", method, a.status)
		}
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, err := w.CreateFormFile("file", "a.mp3")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(file, text("audio", 100_000))
	_ = w.WriteField("model", model)
	_ = w.Close()
	before := entries()
	for _, c := range []struct {
		path, kind string
		body       []byte
	}{
		{"/v1/embeddings", "", jsonOf(t, object{"model": model, "input": []string{text("e", 2000), "b"}})},
		{"/tokenize", "", jsonOf(t, object{"model": model, "prompt": text("t", 2000)})},
		{"/v1/rerank", "", jsonOf(t, object{"model": model, "query": text("q", 2000), "documents": []string{"a"}})},
		{"/score", "", jsonOf(t, object{"model": model, "text_1": text("s", 2000), "text_2": "b"})},
		{"/classify", "", jsonOf(t, object{"model": model, "input": text("c", 2000)})},
		{"/v1/audio/transcriptions", w.FormDataContentType(), form.Bytes()},
	} {
		for range 3 {
			header := map[string]string{}
			if c.kind != "" {
				header["Content-Type"] = c.kind
			}
			if a := g.send("POST", c.path, header, c.body); a.status != 200 || strings.Contains(a.route, "fallback") || strings.Contains(a.route, "reason=prefix") {
				t.Errorf("POST %s: status %d by %q, want a decision without a prefix", c.path, a.status, a.route)
			}
		}
	}
	if after := entries(); after != before {
		t.Errorf("the index grew from %v to %v entries by requests that leave nothing in a cache", before, after)
	}
	start := landed(engines, nil)
	for range 100 {
		g.get("/v1/models")
	}
	inputs := make([]string, 100)
	for i := range inputs {
		inputs[i] = "embed me"
	}
	for range 100 {
		g.post("/v1/embeddings", jsonOf(t, object{"model": model, "input": inputs}))
	}
	for i, n := range landed(engines, start) {
		if n < 20 || n > 100 {
			t.Errorf("%s got %d of 200 requests without a prompt", engines[i].name, n)
		}
	}
	g.idle()
}
