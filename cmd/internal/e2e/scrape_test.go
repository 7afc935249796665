package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// FC-69: an upstream whose page doesn't come delays neither the others'
// numbers nor any request.
func TestFC69OneSlowPageDelaysNobody(t *testing.T) {
	faces := newFaces(t, 5)
	var hangs, ends atomic.Int64                                   // scrapes of the first, and of these those that are over
	faces[0].answer(func(w http.ResponseWriter, r *http.Request) { // headers at once, and no more
		hangs.Add(1)
		defer ends.Add(1)
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	var page atomic.Int64
	for _, f := range faces[1:] {
		f.answer(func(w http.ResponseWriter, _ *http.Request) { // another page each time
			fmt.Fprint(w, quietPage(int(page.Add(1))%3, 0))
		})
	}
	g := site{upstreams: faceAddrs(faces)}.start(t)
	g.becomes(true, faceAddrs(faces)[1:]...)
	// What the slow page holds up ends after it; what comes and goes while one and
	// the same page is waited for isn't, however slow the machine is.
	hanging := func() int64 { // which one is, 0 for none
		if n := hangs.Load(); ends.Load() == n-1 {
			return n
		}
		return 0
	}
	var n int64 // the scrape that hangs
	passed, held, asked := 0, 0, 0
	var scrapes [5]int // at the beginning of n
	var current [5]bool
	eventually(t, "two scrapes have timed out, and others' pages and requests came meanwhile", func() bool {
		if now := hanging(); now != n {
			n = now
			for i, f := range faces {
				scrapes[i] = f.scrapes()
			}
		}
		asked++
		if a := g.post("/v1/chat/completions", chat(user(text(fmt.Sprint("beside", asked), 300)), nil)); a.status != 200 {
			t.Errorf("status %d", a.status)
		}
		if n > 0 && hanging() == n {
			passed++
			for i, f := range faces { // the next begins when the one before is taken in
				current[i] = current[i] || f.scrapes() >= scrapes[i]+3
			}
		} else if n > 0 {
			held++
		}
		return g.failedFor(faces[0].addr, "timeout") >= 2 && passed > held && !slices.Contains(current[1:], false)
	})
	if g.known(faces[0].addr) {
		t.Error("the load of an upstream without a page is known")
	}
	faces[0].mu.Lock()
	defer faces[0].mu.Unlock()
	if faces[0].most != 1 {
		t.Errorf("%d scrapes of one upstream at once, want 1", faces[0].most)
	}
}

// FC-70: old numbers stop to count; their upstream goes on to be used.
func TestFC70OldNumbers(t *testing.T) {
	faces := newFaces(t, 3)
	var pages [3]*face // where the metrics are
	policy := ""
	for i := range pages {
		pages[i] = newFaces(t, 1)[0]
		pages[i].show(quietPage(0, 0))
		policy += fmt.Sprintf("metrics_url %s http://%s/metrics\n", faces[i].addr, pages[i].addr)
	}
	g := site{upstreams: faceAddrs(faces), policy: policy}.start(t)
	g.becomes(true, faceAddrs(faces)...)
	gone := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	pages[0].answer(gone)
	g.becomes(false, faces[0].addr)
	if age, ok := g.gauge("scrape_age_seconds", faces[0].addr); !ok || age < 3 {
		t.Errorf("the last page is told to be %v s old (%v), want the 3 s that it counts at least", age, ok)
	}
	if got := g.cold("one old", 60, faces); got[0] < 5 || got[0] > 40 {
		t.Errorf("cold prompts land %v, want a share of them on U1, whose metrics are gone", got)
	}
	for _, p := range pages[1:] {
		p.answer(gone)
	}
	g.becomes(false, faceAddrs(faces)...)
	for i, n := range g.cold("all old", 60, faces) {
		if n < 5 {
			t.Errorf("U%d gets %d of 60 cold prompts when all metrics are gone", i+1, n)
		}
	}
	home := ""
	for i := range 5 {
		a := g.post("/v1/chat/completions", chat(append(user(text("same", 3000)), message{"user", fmt.Sprint(i)}), nil))
		if home == "" {
			home = a.engine
		}
		if a.status != 200 || a.engine != home {
			t.Errorf("turn %d: status %d on %s, want %s", i, a.status, a.engine, home)
		}
	}
	if n := faces[0].scrapes(); n != 0 {
		t.Errorf("an upstream whose metrics are elsewhere is asked for them %d times", n)
	}
}

// FC-71: one process asks an upstream once an interval, however many sites,
// handlers and states name it.
func TestFC71HandlersShareScrapes(t *testing.T) {
	faces := newFaces(t, 1)
	up := faces[0].addr
	handler := func(path, options string) string {
		return fmt.Sprintf("handle %s {\n reverse_proxy %s {\n lb_policy llm_prefix {\n scrape_interval 50ms\n %s\n }\n }\n}\n", path, up, options)
	}
	s := site{upstreams: []string{up, up}, before: handler("/a/*", "") + handler("/b/*", "state other") + handler("/c/*", "block 512")}
	began := time.Now()
	g := s.start(t)
	eventually(t, "the upstream was scraped 40 times", func() bool { return faces[0].scrapes() >= 40 })
	// The jitter is a tenth of the interval of 50 ms.
	if n, most := faces[0].scrapes(), int(time.Since(began)/(45*time.Millisecond))+1; n > most {
		t.Errorf("%d scrapes in %v, want %d at most", n, time.Since(began), most)
	}
	g.onePoller()
	if _, states := g.metric("caddy_llm_prefix_upstream_load_known", up); states != 3 {
		t.Errorf("%d states know the upstream, want 3", states)
	}
	eventually(t, "all states know its load", func() bool {
		v, _ := g.metric("caddy_llm_prefix_upstream_load_known", up)
		return v == 3
	})
	if counted, _ := g.metric("caddy_llm_prefix_scrapes_total", up); counted > float64(faces[0].scrapes()) || counted < 30 {
		t.Errorf("%v scrapes are counted, and the upstream saw %d", counted, faces[0].scrapes())
	}
}

// FC-72, FC-103: metrics behind a key, on another port or path; the key goes
// there alone and is shown nowhere.
func TestFC72MetricsBehindAKey(t *testing.T) {
	const key = "KEY9c4d"
	faces := newFaces(t, 4)
	keyed := func(name, want string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(name) != want {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprint(w, quietPage(4, 1))
		}
	}
	faces[0].answer(keyed("Authorization", "Bearer "+key+"env"))
	faces[1].answer(keyed("X-Key", key+"file"))
	faces[2].answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("METRICS_KEY", key+"env")
	s := site{
		upstreams: []string{faces[0].addr, faces[3].addr, faces[2].addr},
		policy: "metrics_header Authorization \"Bearer {env.METRICS_KEY}\"\nmetrics_header X-Key {file." + file + "}\n" +
			"metrics_url " + faces[3].addr + " http://" + faces[1].addr + "/custom/metrics?part=1",
		proxy: "lb_retries 1",
	}
	g := s.start(t)
	g.becomes(true, faces[0].addr, faces[3].addr)
	eventually(t, "U3 refuses twice", func() bool { return g.failedFor(faces[2].addr, "status") >= 2 })
	if lines := g.warnings(faces[2].addr); len(lines) != 1 || !strings.Contains(lines[0], `"status":401`) {
		t.Errorf("%d warnings, want one that names the status: %s", len(lines), strings.Join(lines, ""))
	}
	for _, r := range faces[1].requests() {
		if r.URL.Path != "/custom/metrics" || r.URL.RawQuery != "part=1" {
			t.Errorf("metrics are asked for at %s", r.URL)
		}
	}
	if n := faces[3].scrapes(); n != 0 {
		t.Errorf("an upstream whose metrics are elsewhere is asked for them %d times", n)
	}
	// Requests don't carry the key, whoever they go to.
	g.cold("keyed", 20, faces)
	for _, f := range faces {
		for _, e := range f.engine.seen() {
			if strings.Contains(fmt.Sprint(e.header), key) {
				t.Error("a client's request carries the key of the metrics")
			}
		}
	}
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(g.text), map[string]any{"filename": "Caddyfile"})
	if err != nil || !bytes.Contains(config, []byte("{env.METRICS_KEY}")) {
		t.Errorf("the config lacks the placeholder, %v: %s", err, config)
	}
	log, err := os.ReadFile(g.log)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"log": string(log), "metrics": g.get("/gateway/metrics").body, "config": string(config)} {
		if strings.Contains(text, key) {
			t.Errorf("the %s shows the key", name)
		}
	}
}

// FC-75: requests flow before any metrics, and before any upstream.
func TestFC75FirstSecondsAfterStart(t *testing.T) {
	t.Run("metrics are late", func(t *testing.T) {
		faces := newFaces(t, 4)
		late := make(chan struct{})
		for _, f := range faces {
			f.answer(func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-late:
					fmt.Fprint(w, quietPage(0, 0))
				case <-r.Context().Done():
				}
			})
		}
		// All are in flight at once: what was answered sooner gets more.
		var engines []*engine
		for _, f := range faces {
			engines = append(engines, f.engine)
			f.engine.hold()
		}
		g := site{upstreams: faceAddrs(faces)}.start(t)
		answers := make(chan answer)
		for i := range 100 {
			go func() { // ends with its request
				answers <- g.post("/v1/chat/completions", chat(user(text(fmt.Sprint("early", i), 400)), nil))
			}()
		}
		eventually(t, "all requests have arrived", func() bool {
			sum := 0
			for _, n := range landed(engines, nil) {
				sum += n
			}
			return sum == 100
		})
		for _, f := range faces {
			f.engine.release()
		}
		counts := map[string]int{}
		for range 100 {
			a := <-answers
			if a.status != 200 {
				t.Errorf("status %d", a.status)
			}
			counts[a.engine]++
		}
		for _, f := range faces {
			if n := counts[f.engine.name]; n < 15 || n > 35 {
				t.Errorf("of 100 requests %v, want 15 to 35 on each of 4", counts)
			}
			if g.known(f.addr) {
				t.Error("a load is known before any page came")
			}
		}
		close(late)
		g.becomes(true, faceAddrs(faces)...)
	})
	t.Run("upstreams are late", func(t *testing.T) {
		dead := []string{deadAddress(t), deadAddress(t), deadAddress(t)}
		g := site{upstreams: dead, proxy: "lb_try_duration 60s\nlb_try_interval 50ms"}.start(t)
		answers := make(chan answer)
		for i := range 10 {
			go func() { // ends with its request
				answers <- g.post("/v1/chat/completions", chat(user(text(fmt.Sprint("early", i), 400)), nil))
			}()
		}
		eventually(t, "all requests have been tried in vain", func() bool {
			n, _ := g.metric("caddy_llm_prefix_decisions_total", `reason="retry"`)
			return n >= 30
		})
		e := newEngines(t, 1)[0]
		serveAt(t, dead[1], e)
		for range 10 {
			if a := <-answers; a.status != 200 || a.engine != e.name {
				t.Errorf("status %d of %q, want 200 of %s: %.200s", a.status, a.engine, e.name, a.body)
			}
		}
		g.becomes(true, dead[1])
	})
}

// An engine that sleeps gets no requests while others are awake.
func TestSleepingEngineIsLeftAlone(t *testing.T) {
	faces := newFaces(t, 2)
	state := func(awake int) string {
		return quietPage(0, 0) + fmt.Sprintf("vllm:engine_sleep_state{engine=\"0\",model_name=\"bench\",sleep_state=\"awake\"} %d.0\n", awake)
	}
	faces[0].show(state(0))
	faces[1].show(state(1))
	g := site{upstreams: faceAddrs(faces)}.start(t)
	g.becomes(true, faces[1].addr)
	eventually(t, "U1 was scraped", func() bool { _, ok := g.gauge("scrape_age_seconds", faces[0].addr); return ok })
	if got := g.cold("night", 20, faces); got[0] != 0 {
		t.Errorf("cold prompts land %v, want none on U1, which sleeps", got)
	}
	faces[1].show(state(0))
	faces[1].taken(t)
	g.cold("all asleep", 4, faces) // is served all the same
	for _, f := range faces {
		f.show(state(1))
		f.taken(t)
	}
	if got := g.cold("day", 40, faces); got[0] < 5 {
		t.Errorf("cold prompts land %v, want a share of them on U1, which is awake", got)
	}
}
