package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// landed is how many requests reached each engine since the counts in before.
func landed(engines []*engine, before []int) []int {
	n := make([]int, len(engines))
	for i, e := range engines {
		n[i] = e.count()
		if before != nil {
			n[i] -= before[i]
		}
	}
	return n
}

// Each turn of a conversation lands where its prefix is, and conversations
// are spread.
func TestTurnsLandWhereTheirPrefixIs(t *testing.T) {
	engines := newEngines(t, 3)
	g := site{upstreams: addrs(engines)}.start(t)
	homes := make(map[string]bool)
	for c := range 12 {
		messages := user(text(fmt.Sprint("conversation", c), 2000))
		home := ""
		for turn := range 5 {
			a := g.post("/v1/chat/completions", chat(messages, nil))
			if a.status != 200 {
				t.Fatalf("conversation %d, turn %d: status %d: %s", c, turn, a.status, a.body)
			}
			if home == "" {
				home = a.engine
			}
			if a.engine != home {
				t.Errorf("conversation %d, turn %d: on %s, began on %s (%s)", c, turn, a.engine, home, a.route)
			}
			if turn > 0 && !strings.Contains(a.route, "reason=prefix") {
				t.Errorf("conversation %d, turn %d: decision is %q, want reason=prefix", c, turn, a.route)
			}
			messages = append(messages, message{"assistant", reply(t, a)}, message{"user", text(fmt.Sprint("turn", c, turn), 300)})
		}
		homes[home] = true
	}
	if len(homes) < 2 {
		t.Errorf("12 conversations one after the other all live on %v", homes)
	}
	g.idle()
}

// FC-03: content as a string, as one text part and as two parts are one
// prompt where the engine sees one; each form has complete affinity.
func TestFC03ContentAsParts(t *testing.T) {
	engines := newEngines(t, 3)
	g := site{upstreams: addrs(engines)}.start(t)
	part := func(s string) map[string]string { return map[string]string{"type": "text", "text": s} }
	// The parts are cut at a line break: engines join them with one.
	first, second := text("first", 1500), text("second", 1500)
	forms := []struct {
		name    string
		content any
	}{
		{"string", first + "\n" + second},
		{"one part", []any{part(first + "\n" + second)}},
		{"two parts", []any{part(first), part(second)}},
	}
	home := ""
	for _, f := range forms {
		for i := range 10 {
			a := g.post("/v1/chat/completions", chat([]message{
				{"user", f.content}, {"assistant", "Yes."}, {"user", text(f.name+fmt.Sprint(i), 100)},
			}, nil))
			if a.status != 200 {
				t.Fatalf("%s: status %d: %s", f.name, a.status, a.body)
			}
			if home == "" {
				home = a.engine
			}
			if a.engine != home {
				t.Errorf("%s, request %d: on %s, want %s (%s)", f.name, i, a.engine, home, a.route)
			}
		}
	}
}

// FC-31: only a prompt's beginning counts; the same text in the middle of
// another prompt doesn't.
func TestFC31OnlyATruePrefixCounts(t *testing.T) {
	engines := newEngines(t, 2)
	g := site{upstreams: addrs(engines)}.start(t)
	x, y := text("1", 1600), text("2", 1600)
	complete := func(prompt string) answer {
		t.Helper()
		a := g.post("/v1/completions", chatless(prompt))
		if a.status != 200 {
			t.Fatalf("status %d: %s", a.status, a.body)
		}
		return a
	}
	onX := complete(x).engine

	// Y is forced elsewhere: where X lives, a longer prompt is being worked on.
	i := slices.IndexFunc(engines, func(e *engine) bool { return e.name == onX })
	engines[i].hold()
	var held sync.WaitGroup
	held.Go(func() { complete(x + text("longer", 4000)) })
	eventually(t, "the longer prompt has arrived", func() bool { return engines[i].count() == 2 })
	onY := complete(y).engine
	if onY == onX {
		t.Fatalf("Y landed on %s, which is busy with a longer prompt", onY)
	}
	engines[i].release()
	held.Wait()
	g.idle()

	for k := range 20 {
		if a := complete(y + x + text(fmt.Sprint(100+k), 64)); a.engine != onY {
			t.Errorf("Y+X, request %d: on %s, want %s (%s)", k, a.engine, onY, a.route)
		}
	}
	for k := range 20 {
		if a := complete(x + text(fmt.Sprint(200+k), 64)); a.engine != onX {
			t.Errorf("X, request %d: on %s, want %s (%s)", k, a.engine, onX, a.route)
		}
	}
	// A new beginning each time: the second of equal ones would be a prefix.
	for k := range 5 {
		a := complete(text(fmt.Sprint("3-", k), 16) + x)
		if !strings.Contains(a.route, "; matched_tokens=0;") {
			t.Errorf("X after other text, request %d: decision is %q, want no match", k, a.route)
		}
	}
}

// FC-35: cold prompts on an idle pool are spread, and a busy upstream starves
// none of the others.
func TestFC35ColdRequestsOnAnIdlePool(t *testing.T) {
	engines := newEngines(t, 4)
	for _, e := range engines {
		e.show(quietPage(0, 0))
	}
	g := site{upstreams: addrs(engines)}.start(t)
	send := func(n int, seed string) []int {
		t.Helper()
		before := landed(engines, nil)
		for i := range n {
			if a := g.post("/v1/chat/completions", chat(user(text(fmt.Sprint(seed, i), 800)), nil)); a.status != 200 {
				t.Fatalf("status %d: %s", a.status, a.body)
			}
		}
		return landed(engines, before)
	}
	for i, n := range send(400, "cold") {
		if n < 57 || n > 143 {
			t.Errorf("%s got %d of 400 cold prompts, want 57 to 143", engines[i].name, n)
		}
	}

	// One of the four is kept busy by others, as its page says.
	engines[0].show(quietPage(20, 8))
	before := engines[0].scraped()
	eventually(t, "the busy page was read", func() bool { return engines[0].scraped() >= before+2 })
	got := send(300, "busy")
	for i, n := range got[1:] {
		if n < 50 {
			t.Errorf("%s got %d of 300 while U1 was busy: starved (%v)", engines[i+1].name, n, got)
		}
	}
	if got[0] > got[1]/2 {
		t.Errorf("U1, with 20 waiting, got %v", got)
	}
}

// FC-37: a burst between two scrapes is spread by what the gateway itself has
// in flight, also when all of it would rather go to one upstream.
func TestFC37BurstBetweenTwoScrapes(t *testing.T) {
	engines := newEngines(t, 4)
	for _, e := range engines {
		e.show(quietPage(0, 0))
	}
	g := site{upstreams: addrs(engines)}.start(t)
	shared := text("shared", 8000)
	warm := g.post("/v1/chat/completions", chat(user(shared), nil))

	burst := func(prompt func(i int) []message) []int {
		t.Helper()
		for _, e := range engines {
			e.hold()
		}
		before := landed(engines, nil)
		var clients sync.WaitGroup
		for i := range 40 {
			clients.Go(func() {
				if a := g.post("/v1/chat/completions", chat(prompt(i), nil)); a.status != 200 {
					t.Errorf("status %d: %s", a.status, a.body)
				}
			})
		}
		arrived := func() (sum int) {
			for _, n := range landed(engines, before) {
				sum += n
			}
			return sum
		}
		eventually(t, "all 40 have arrived", func() bool { return arrived() == 40 })
		got := landed(engines, before)
		for _, e := range engines {
			e.release()
		}
		clients.Wait()
		return got
	}
	cold := burst(func(i int) []message { return user(text(fmt.Sprint("burst", i), 8000)) })
	for i, n := range cold {
		if n < 6 || n > 14 {
			t.Errorf("%s got %d of 40 cold prompts, want 6 to 14 (%v)", engines[i].name, n, cold)
		}
	}
	got := burst(func(i int) []message {
		return append(user(shared), message{"assistant", "Yes."}, message{"user", text(fmt.Sprint("tail", i), 2000)})
	})
	home := slices.IndexFunc(engines, func(e *engine) bool { return e.name == warm.engine })
	if got[home] == 40 || got[home] != slices.Max(got) {
		t.Errorf("a warm burst went %v with the prefix on %s, want most there, not all", got, warm.engine)
	}
	g.idle()
}

// FC-59: a page with other names, or none, is not that of an idle engine.
func TestFC59UnknownNamesMustNotMeanIdle(t *testing.T) {
	engines := newEngines(t, 3)
	engines[0].show(`# TYPE ray_vllm:num_requests_running gauge
ray_vllm:num_requests_running{Component="core_worker",NodeAddress="10.0.0.1",SessionName="s",Version="2.9",WorkerId="w",engine="0",model_name="bench"} 4.0
# TYPE ray_vllm:num_requests_waiting gauge
ray_vllm:num_requests_waiting{Component="core_worker",NodeAddress="10.0.0.1",SessionName="s",Version="2.9",WorkerId="w",engine="0",model_name="bench"} 10.0
`)
	engines[1].show(quietPage(1, 1))
	engines[2].show(quietPage(1, 1))
	g := site{upstreams: addrs(engines)}.start(t)
	eventually(t, "all pages were read", func() bool {
		n, _ := g.metric("caddy_llm_prefix_upstream_load_known")
		return n == 3
	})
	for i := range 100 {
		g.post("/v1/chat/completions", chat(user(text(fmt.Sprint("cold", i), 400)), nil))
	}
	if got := landed(engines, nil); got[0] > 20 {
		t.Errorf("U1, with 10 waiting by Ray's names, got %d of 100: %v", got[0], got)
	}

	// Now a page of something else.
	engines[0].show("# TYPE python_info gauge\npython_info{version=\"3.12\"} 1.0\n")
	known := func() float64 {
		n, _ := g.metric("caddy_llm_prefix_upstream_load_known", `upstream="`+engines[0].addr+`"`)
		return n
	}
	eventually(t, "U1 is unknown", func() bool { return known() == 0 })
	before := landed(engines, nil)
	for i := range 90 {
		g.post("/v1/chat/completions", chat(user(text(fmt.Sprint("colder", i), 400)), nil))
	}
	if got := landed(engines, before); got[0] > 80 {
		t.Errorf("U1, of which nothing is known, drew %d of 90: %v", got[0], got)
	}
	scrapes := engines[0].scraped()
	eventually(t, "U1 was asked again", func() bool { return engines[0].scraped() > scrapes })
	if lines := g.logged(`"level":"warn"`, engines[0].addr); len(lines) != 1 {
		t.Errorf("%d warnings about U1, want 1:\n%s", len(lines), strings.Join(lines, ""))
	}
}

// An upstream without a metrics page is routed to by own knowledge.
func TestNoMetricsPage(t *testing.T) {
	engines := newEngines(t, 2)
	for _, e := range engines {
		e.show("")
	}
	g := site{upstreams: addrs(engines)}.start(t)
	home := ""
	for i := range 10 {
		a := g.post("/v1/chat/completions", chat(append(user(text("same", 3000)), message{"user", fmt.Sprint(i)}), nil))
		if home == "" {
			home = a.engine
		}
		if a.status != 200 || a.engine != home {
			t.Errorf("request %d: status %d on %s, want %s", i, a.status, a.engine, home)
		}
	}
	eventually(t, "failed scrapes are counted", func() bool {
		a, _ := g.metric("caddy_llm_prefix_scrapes_total", `result="not_metrics"`, engines[0].addr)
		b, _ := g.metric("caddy_llm_prefix_scrapes_total", `result="not_metrics"`, engines[1].addr)
		return a > 0 && b > 0
	})
}
