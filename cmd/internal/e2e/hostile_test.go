package e2e

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	names "github.com/prometheus/common/model"
)

// FC-100: uploads that never end stop nobody and slow nobody down, take no memory
// on a client's word, and leave no reservation behind. Each sends a byte a second
// where others send 50 requests a second, so 10 bytes come between two of these.
func TestFC100SlowUploadsBlockNobody(t *testing.T) {
	engines := newEngines(t, 3)
	g := site{upstreams: addrs(engines)}.start(t)
	g.post("/v1/chat/completions", chat(user("Warm."), nil))
	alive := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools keep lives through one
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	conns := make([]net.Conn, 500)
	asked, dripped := 0, 0
	p99 := func(drips int) time.Duration {
		took := make([]time.Duration, 100)
		for i := range took {
			for range drips {
				_, _ = conns[dripped%len(conns)].Write([]byte(" "))
				dripped++
			}
			body := chat(user(text(fmt.Sprint("timed", asked), 1000)), nil)
			asked++
			began := time.Now()
			if a := g.post("/v1/chat/completions", body); a.status != 200 {
				t.Fatalf("status %d", a.status)
			}
			took[i] = time.Since(began)
		}
		slices.Sort(took)
		return took[len(took)*99/100-1]
	}
	undisturbed := func() time.Duration {
		least := time.Hour
		for range 5 {
			least = min(least, p99(0))
		}
		return least
	}
	alone := undisturbed()
	before := alive()
	for i := range conns {
		conn, err := g.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns[i] = conn
		fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: 10000000\r\n\r\n{\"messages\":[")
	}
	// They go on, a byte at a time, while others are served.
	var others sync.WaitGroup
	for c := range 8 {
		others.Go(func() {
			for i := range 25 {
				a := g.post("/v1/chat/completions", chat(user(text(fmt.Sprint(c, "/", i), 1000)), nil))
				if a.status != 200 || a.attempt != 1 {
					t.Errorf("status %d at attempt %d", a.status, a.attempt)
				}
			}
		})
	}
	for range 3 {
		for _, conn := range conns {
			_, _ = conn.Write([]byte(" "))
		}
	}
	others.Wait()
	more := int64(alive()-before) / 500
	t.Logf("each slow upload takes %d KiB", more>>10)
	if more > 100<<10 {
		t.Error("want no more than 100 KiB")
	}
	if n, _ := g.metric("caddy_llm_prefix_inflight_requests"); n != 0 {
		t.Errorf("%v requests are in flight that have no prompt yet", n)
	}
	// The least of some rounds counts, and of more while the machine is busy; what
	// its clock and scheduler can't tell apart is no growth.
	most := func() time.Duration { return max(alone*12/10, alone+time.Millisecond) }
	together := time.Hour
	for until := time.Now().Add(patience); together > most() && time.Now().Before(until); {
		together = min(together, p99(10))
	}
	for _, conn := range conns {
		conn.Close()
	}
	eventually(t, "the uploads have ended", func() bool { return goroutinesIn("caddyllm.readBody") == 0 })
	if together > most() { // others may have come to the machine since
		alone = max(alone, undisturbed())
	}
	if together > most() {
		t.Errorf("p99 is %v beside slow uploads and %v without, want a fifth more at most", together, alone)
	}
	t.Logf("p99 %v alone, %v beside slow uploads", alone, together)
	g.idle()
	sum := 0
	for _, e := range engines {
		sum += e.count()
	}
	if want := 201 + asked; sum != want {
		t.Errorf("%d requests reached engines, want %d: none of a body that never came whole", sum, want)
	}
}

// FC-105: whatever clients say of models, users, sessions and salts, there are no
// more series than upstreams need, and the page stays readable.
// caddyllm has the 100,000 requests of the case.
func TestFC105LabelsAreBounded(t *testing.T) {
	engines := agreeable(t, 2)
	g := site{upstreams: addrs(engines), policy: "session_header X-Session-Id", asked: true}.start(t)
	series := func() int {
		t.Helper()
		page := g.get("/gateway/metrics").body
		parser := expfmt.NewTextParser(names.UTF8Validation)
		if _, err := parser.TextToMetricFamilies(strings.NewReader(page)); err != nil {
			t.Fatalf("the page can't be read: %v", err)
		}
		n := 0
		for line := range strings.Lines(page) {
			// Those of other tests' upstreams are kept for an hour.
			others := strings.Contains(line, `upstream="`) && !strings.Contains(line, engines[0].addr) && !strings.Contains(line, engines[1].addr)
			if strings.HasPrefix(line, "caddy_llm_prefix_") && !strings.Contains(line, "_bucket{") && !others {
				n++
			}
		}
		return n
	}
	strange := []string{
		strconv.Quote(strings.Repeat("m", 1<<20)), `"a\nb"`, `"a\"b"`, `"a\\b"`, `"a\u0000b"`, "\"a\xff\xfeb\"", `1`, `{"a":1}`, `null`, `[]`, `""`,
	}
	ask := func(i int) {
		name := strconv.Quote(fmt.Sprint("model", i))
		if i < len(strange) {
			name = strange[i]
		}
		body := fmt.Sprintf(`{"model":%s,"user":"u%d","cache_salt":"s%d","prompt_cache_key":"k%d","messages":[{"role":"user","content":%q}]}`, name, i, i, i, text(fmt.Sprint(i), 300))
		a := g.send("POST", "/v1/chat/completions", map[string]string{"X-Session-Id": fmt.Sprint("session", i)}, []byte(body))
		if a.status != 200 {
			t.Fatalf("status %d", a.status)
		}
	}
	for i := range 200 {
		ask(i)
	}
	before := series()
	for i := range 800 {
		ask(200 + i)
	}
	if after := series(); after != before || after > 50+20*2 {
		t.Errorf("%d series after 200 strange requests, %d after 1,000, want as many and at most 90", before, after)
	}
}

// FC-106: equal prompts with unequal salts share nothing, also not whom they are
// with.
func TestFC106SaltsSeparateTenants(t *testing.T) {
	engines := newEngines(t, 4)
	g := site{upstreams: addrs(engines)}.start(t)
	shared := text("tenants", 10_000)
	with := func(salt any) []byte {
		more := map[string]any{}
		if salt != nil {
			more["cache_salt"] = salt
		}
		return chat(user(shared), more)
	}
	landed := map[string]int{}
	a := g.post("/v1/chat/completions", with("a"))
	for i := range 60 {
		b := g.post("/v1/chat/completions", with(fmt.Sprint("b", i)))
		if b.status != 200 || !strings.Contains(b.route, "reason=cold") || !strings.Contains(b.route, "matched_tokens=0") {
			t.Fatalf("a tenant of another salt is decided by %q, want cold", b.route)
		}
		landed[b.engine]++
	}
	for _, e := range engines {
		if n := landed[e.name]; n < 1 || n > 37 {
			t.Errorf("tenants of other salts land %v, want them spread", landed)
		}
	}
	if none := g.post("/v1/chat/completions", with(nil)); !strings.Contains(none.route, "reason=cold") {
		t.Errorf("without a salt it is decided by %q, want cold", none.route)
	}
	if again := g.post("/v1/chat/completions", with("a")); again.engine != a.engine || !strings.Contains(again.route, "reason=prefix") {
		t.Errorf("the same tenant is decided by %q to %s, want %s for its prefix", again.route, again.engine, a.engine)
	}
	// What vLLM refuses is its to refuse, and passes untouched.
	for _, salt := range []any{"", 7, map[string]any{"a": 1}} {
		sent := with(salt)
		b := g.post("/v1/chat/completions", sent)
		found := false
		for _, e := range engines {
			for _, n := range e.seen() {
				found = found || string(n.body) == string(sent)
			}
		}
		if !found || b.status != 200 && b.status != 400 && b.status != 422 {
			t.Errorf("salt %v: status %d, passed untouched: %v", salt, b.status, found)
		}
	}
	g.idle()
}
