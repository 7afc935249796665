package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// forwarded posts a body and wants one engine to read it as it was sent, and its
// status to be the answer's.
func (g *gateway) forwarded(engines []*engine, path, kind string, body []byte, status int) answer {
	g.t.Helper()
	before := landed(engines, nil)
	a := g.send("POST", path, map[string]string{"Content-Type": kind}, body)
	if a.status != status {
		g.t.Errorf("%.60q: status %d by %q, want the engine's %d", body, a.status, a.route, status)
	}
	read := 0
	for i, n := range landed(engines, before) {
		read += n
		if n == 0 {
			continue
		}
		if seen := engines[i].seen(); !bytes.Equal(seen[len(seen)-1].body, body) {
			g.t.Errorf("%.60q: the engine read %.60q", body, seen[len(seen)-1].body)
		}
	}
	if read != 1 {
		g.t.Errorf("%.60q reached %d engines, want 1", body, read)
	}
	return a
}

const asJSON = "application/json"

// FC-01: prompts of token ids have affinity, and what is none passes as it came.
func TestFC01TokenIDPrompts(t *testing.T) {
	engines := agreeable(t, 3)
	g := site{upstreams: addrs(engines)}.start(t)
	ids := make([]int, 601)
	for i := range ids {
		ids[i] = i + 1
	}
	home := ""
	for k := 1001; k <= 1020; k++ {
		ids[600] = k
		a := g.forwarded(engines, "/v1/completions", asJSON, jsonOf(t, object{"model": model, "prompt": ids, "max_tokens": 1}), 200)
		if home == "" {
			home = a.engine
		}
		if a.engine != home || k > 1001 && !strings.Contains(a.route, "reason=prefix") {
			t.Errorf("prompt %d is on %s by %q, want prefix on %s", k, a.engine, a.route, home)
		}
	}
	for _, odd := range []string{`[[1,2,3],[4,5,6]]`, `[]`, `[1.5]`, `[-1]`, `[18446744073709551616]`} {
		g.forwarded(engines, "/v1/completions", asJSON, []byte(`{"model":"bench","prompt":`+odd+`,"max_tokens":1}`), 200)
	}
	g.idle()
}

// FC-02: of a batch the first prompt is the key, and all of them are the work.
func TestFC02BatchedPrompts(t *testing.T) {
	engines := newEngines(t, 3)
	g := site{upstreams: addrs(engines)}.start(t)
	batch := func(seed string) []byte {
		prompts := make([]string, 32)
		for i := range prompts {
			prompts[i] = text(fmt.Sprint(seed, i), 4000)
		}
		return jsonOf(t, object{"model": model, "prompt": prompts, "max_tokens": 4})
	}
	home := g.forwarded(engines, "/v1/completions", asJSON, batch("warm"), 200).engine
	for range 10 {
		if a := g.post("/v1/completions", chatless(text("warm0", 4000)+"tail")); a.status != 200 || a.engine != home {
			t.Errorf("a prompt that begins as the batch's first: status %d on %s by %q, want %s", a.status, a.engine, a.route, home)
		}
	}
	if a := g.post("/v1/completions", chatless(text("warm1", 4000)+"tail")); !strings.Contains(a.route, "; matched_tokens=0;") {
		t.Errorf("a prompt that begins as the batch's second: decision is %q, want no match", a.route)
	}
	g.idle()

	// While a batch is worked on, others keep away from it.
	for _, e := range engines {
		e.hold()
	}
	before := landed(engines, nil)
	var held sync.WaitGroup
	held.Go(func() { g.post("/v1/completions", batch("cold")) })
	busy := -1
	eventually(t, "the batch has arrived", func() bool {
		busy = slices.Index(landed(engines, before), 1)
		return busy >= 0
	})
	for i, e := range engines {
		if i != busy {
			e.release()
		}
	}
	for i := range 4 {
		held.Go(func() { g.post("/v1/completions", chatless(text(fmt.Sprint("single", i), 4000))) })
		eventually(t, "a single prompt has arrived", func() bool {
			n := 0
			for _, at := range landed(engines, before) {
				n += at
			}
			return n == i+2
		})
	}
	if n := landed(engines, before)[busy] - 1; n != 0 {
		t.Errorf("%d of 4 cold prompts went where 32 are worked on", n)
	}
	engines[busy].release()
	held.Wait()
	g.idle()
}

// FC-16: empty, broken and other bodies without a prompt reach one engine as they
// came, its answer is the client's, and the index learns nothing of them.
func TestFC16BodiesWithoutAPrompt(t *testing.T) {
	engines := newEngines(t, 2)
	for _, e := range engines {
		e.answer(func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"error":{"message":"no"}}`)
		})
	}
	g := site{upstreams: addrs(engines)}.start(t)
	for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/generate", "/invocations", "/"} {
		for _, body := range []string{
			``, `null`, `[]`, `"hi"`, `{`, `{"model":"m"}`, `{"messages":{}}`, `{"messages":[null,1,"x",{}]}`, `{"messages":"text"}`, `7`, "\x00", `{"prompt":null,"input":[]}`,
			string(chat(user("hi"), nil)) + `{"a":1}`,
		} {
			for _, kind := range []string{asJSON, "text/plain"} {
				if a := g.forwarded(engines, path, kind, []byte(body), http.StatusUnprocessableEntity); !strings.Contains(a.route, "fallback:") {
					t.Errorf("%s, %q: decision is %q, want the fallback", path, body, a.route)
				}
			}
		}
	}
	if n, series := g.metric("caddy_llm_prefix_index_entries"); n != 0 || series == 0 {
		t.Errorf("the index has %v entries in %d series, want 0", n, series)
	}
	g.idle()
}

// FC-23: turns of a conversation stay together, whatever they ask of sampling and
// however their JSON is written.
func TestFC23SamplingSettingsAreNotThePrefix(t *testing.T) {
	engines := agreeable(t, 3)
	g := site{upstreams: addrs(engines)}.start(t)
	settings := []string{
		`"temperature":0.2`, `"max_tokens":7,"stream":true`, `"user":"u","top_p":0.5`, `"stream_options":{"include_usage":true},"stream":true`, `"seed":9007199254740993`,
		`"stop":["x"],"n":2`, `"logit_bias":{"5":1}`, `"tool_choice":"none"`, `"response_format":{"type":"json_object"}`, `"logprobs":true,"top_logprobs":2`, `"metadata":{"a":"b"}`, `"presence_penalty":1e-1`,
	}
	turns := []any{object{"role": "system", "content": "café/naïve " + text("system", 3000)}}
	home := ""
	for i, setting := range settings {
		turns = append(turns, object{"role": "user", "content": fmt.Sprintf("é/%d ", i) + text(fmt.Sprint("turn", i), 300)})
		messages := string(jsonOf(t, turns)) // names in order, that is content before role
		if i%2 == 0 {
			messages = strings.ReplaceAll(messages, `/`, `\/`)
		}
		if i%3 == 0 {
			messages = strings.NewReplacer("é", `\u00e9`, "ï", `\u00EF`).Replace(messages)
		}
		members := []string{`"messages":` + messages, `"model":"bench"`, setting}
		members = append(members[i%3:], members[:i%3]...)
		body := []byte(`{` + strings.Join(members, ",") + `}`)
		if i%4 > 1 {
			var b bytes.Buffer
			if err := json.Indent(&b, body, "", strings.Repeat(" ", i%4)); err != nil {
				t.Fatal(err)
			}
			body = b.Bytes()
		}
		a := g.forwarded(engines, "/v1/chat/completions", asJSON, body, 200)
		if home == "" {
			home = a.engine
		}
		if a.engine != home || i > 0 && !strings.Contains(a.route, "reason=prefix") {
			t.Errorf("turn %d with %s is on %s by %q, want prefix on %s", i, setting, a.engine, a.route, home)
		}
	}
	g.idle()
}

// FC-26: where characters have many bytes, blocks may end inside of one; a prompt
// matches up to what is changed in it, and no further.
func TestFC26MultiByteText(t *testing.T) {
	engines := agreeable(t, 3)
	g := site{upstreams: addrs(engines)}.start(t)
	for offset := range 10 { // the bytes of the characters that come again and again
		letters := []rune(fmt.Sprint(offset) + strings.Repeat("x", offset) + strings.Repeat("漢字😀", 10_000))
		ask := func() answer { return g.post("/v1/completions", chatless(string(letters))) }
		matched := func(a answer) (prompt, matched int) {
			_, rest, _ := strings.Cut(a.route, "; prompt_tokens=")
			if _, err := fmt.Sscanf(rest, "%d; matched_tokens=%d;", &prompt, &matched); err != nil {
				t.Fatalf("decision is %q: %v", a.route, err)
			}
			return prompt, matched
		}
		home := ask()
		letters[len(letters)-1] = '😁'
		a := ask()
		if all, n := matched(a); a.status != 200 || a.engine != home.engine || n >= all || n < all*99/100 {
			t.Errorf("offset %d, last character changed: %d of %d tokens matched on %s by %q, want all but a block's on %s", offset, n, all, a.engine, a.route, home.engine)
		}
		letters[len(letters)-1], letters[10] = '😀', '界'
		a = ask()
		if _, n := matched(a); a.status != 200 || n != 0 {
			t.Errorf("offset %d, character 10 changed: %d tokens matched by %q, want 0", offset, n, a.route)
		}
	}
	g.idle()
}

// FC-28: brackets in brackets are given up and passed on, and cost neither their
// sender nor others more than as many bytes of anything else.
func TestFC28VeryDeepJSON(t *testing.T) {
	engines := agreeable(t, 3)
	g := site{upstreams: addrs(engines)}.start(t)
	places := []string{
		`{"messages":[{"role":"user","content":"a"}],"x":%s}`,
		`{"messages":[{"role":"user","content":%s}]}`,
		`{"messages":[{"role":"user","content":"a"}],"tools":[%s]}`,
	}
	deep := func(place string, n int) []byte {
		return fmt.Appendf(nil, place, strings.Repeat("[", n)+strings.Repeat("]", n))
	}
	for _, place := range places {
		for _, n := range []int{3000, 9999, 10_001, 2_000_000} {
			if a := g.forwarded(engines, "/v1/chat/completions", asJSON, deep(place, n), 200); !strings.Contains(a.route, "fallback:broken_json") {
				t.Errorf("%s, %d deep: decision is %q, want load only", place, n, a.route)
			}
		}
	}

	const most = 100 * time.Millisecond
	flat := fmt.Appendf(nil, places[0], `"`+strings.Repeat("a", 4_000_000)+`"`)
	asked := 0
	// round is the slowest of 50 others' requests, near their 99th percentile, and the
	// fastest of the large ones beside them.
	round := func(large []byte) (others, own time.Duration) {
		own = time.Hour
		var beside sync.WaitGroup
		beside.Go(func() {
			for range 3 {
				began := time.Now()
				g.post("/v1/chat/completions", large)
				own = min(own, time.Since(began))
			}
		})
		for range 50 {
			body := chat(user(text(fmt.Sprint("beside", asked), 1000)), nil)
			asked++
			began := time.Now()
			if a := g.post("/v1/chat/completions", body); a.status != 200 {
				t.Errorf("status %d beside a deep body", a.status)
			}
			others = max(others, time.Since(began))
		}
		beside.Wait()
		return others, own
	}
	// The least of some rounds counts, and of more while the machine is busy.
	type times struct{ others, own time.Duration }
	besideFlat, besideDeep := times{time.Hour, time.Hour}, times{time.Hour, time.Hour}
	measure := func(least *times, large []byte) {
		others, own := round(large)
		least.others, least.own = min(least.others, others), min(least.own, own)
	}
	// Where a flat body takes long as well, as with the race detector, a deep one may.
	good := func() bool {
		return besideDeep.own < max(most, 2*besideFlat.own) && besideDeep.others <= besideFlat.others*12/10+time.Millisecond
	}
	for until, n := time.Now().Add(patience), 0; time.Now().Before(until) && (n == 0 || !good()); n++ {
		for _, place := range places {
			measure(&besideDeep, deep(place, 2_000_000))
		}
		measure(&besideFlat, flat)
	}
	t.Logf("a deep body of 4 MB takes %v, a flat one %v; others take %v beside the first, %v beside the second", besideDeep.own, besideFlat.own, besideDeep.others, besideFlat.others)
	if !good() {
		t.Errorf("want less than %v, and others no more than a fifth slower", most)
	}
	g.idle()
}
