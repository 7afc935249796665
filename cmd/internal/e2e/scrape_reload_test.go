package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// FC-90: several handlers and sites register the metrics once, and their
// series go on to move after each reload.
func TestFC90MetricsSurviveReloads(t *testing.T) {
	faces := newFaces(t, 2)
	handler := func(path string) string {
		return fmt.Sprintf("handle %s {\n reverse_proxy %s {\n lb_policy llm_prefix {\n scrape_interval 50ms\n }\n }\n}\n",
			path, strings.Join(faceAddrs(faces), " "))
	}
	g := site{upstreams: faceAddrs(faces), before: handler("/a/*") + handler("/b/*")}.start(t)
	second := fmt.Sprintf("http://second {\n bind %s2\n%s}\n", g.listen, handler("/*"))
	total := func(name string) float64 {
		t.Helper()
		n, series := g.metric("caddy_llm_prefix_" + name)
		if series == 0 {
			t.Fatalf("no series of %s: %.300s", name, g.get("/gateway/metrics").body)
		}
		return n
	}
	for i := range 5 {
		config := g.text + second
		if i%2 == 1 {
			config = g.text
		}
		if err := load(config); err != nil {
			t.Fatalf("reload %d: %v", i, err)
		}
		g.becomes(true, faceAddrs(faces)...)
		scrapes := total("scrapes_total")
		for n := range 3 {
			if a := g.insist("/v1/chat/completions", chat(user(text(fmt.Sprint("reload", i, n), 400)), nil)); a.status != 200 {
				t.Fatalf("reload %d: status %d: %.200s", i, a.status, a.body)
			}
		}
		if n := total("decisions_total"); n < float64(3*(i+1)) {
			t.Errorf("reload %d: %v decisions are counted, want 3 for each reload", i, n)
		}
		eventually(t, "scrapes are counted", func() bool { return total("scrapes_total") > scrapes })
		if _, n := g.metric("caddy_llm_prefix_upstream_load_known"); n != len(faces) {
			t.Errorf("reload %d: %d series of upstream_load_known, want one for each upstream", i, n)
		}
	}
}

// A new config takes over scraping with what it changes: the key, the place,
// the upstreams.
func TestReloadChangesWhatIsScraped(t *testing.T) {
	faces := newFaces(t, 3)
	s := site{upstreams: faceAddrs(faces[:2]), policy: "metrics_header X-Key old"}
	g := s.start(t)
	g.becomes(true, faceAddrs(faces[:2])...)
	changed := strings.Replace(g.text, "metrics_header X-Key old", "metrics_header X-Key new\n metrics_url "+faces[0].addr+" http://"+faces[2].addr+"/metrics", 1)
	changed = strings.Replace(changed, faces[0].addr+" "+faces[1].addr+" {", faces[0].addr+" {", 1)
	if err := load(changed); err != nil {
		t.Fatal(err)
	}
	before := [2]int{faces[0].scrapes(), faces[1].scrapes()}
	eventually(t, "the new place was scraped ten times", func() bool { return faces[2].scrapes() >= 10 })
	// One scrape may have been on its way when the config changed.
	if a, b := faces[0].scrapes()-before[0], faces[1].scrapes()-before[1]; a > 1 || b > 1 {
		t.Errorf("the old places are scraped %d and %d times more", a, b)
	}
	for _, r := range faces[2].requests() {
		if r.Header.Get("X-Key") != "new" {
			t.Errorf("scraped with key %q", r.Header.Get("X-Key"))
		}
	}
	g.becomes(true, faces[0].addr)
}
