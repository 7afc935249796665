package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// FC-89: a reload keeps what was learned, a restart begins anew, and what no
// config uses any more is given up.
func TestFC89ReloadKeepsWhatWasLearned(t *testing.T) {
	engines := newEngines(t, 4)
	// Caddy loses a socket file when it is stopped, not a port.
	g := site{upstreams: addrs(engines[:3]), tcp: true}.start(t)
	homes := make([]string, 100)
	turn := 0
	// next sends each conversation's next turn, and tells how many stayed.
	next := func() (stayed int) {
		t.Helper()
		turn++
		for c := range homes {
			messages := user(text(fmt.Sprint("conversation", c), 2000))
			for i := range turn {
				messages = append(messages, message{"user", fmt.Sprint("And ", i, "?")})
			}
			a := g.insist("/v1/chat/completions", chat(messages, nil))
			if a.status != 200 {
				t.Fatalf("status %d: %.200s", a.status, a.body)
			}
			if homes[c] == a.engine {
				stayed++
			}
			homes[c] = a.engine
		}
		return stayed
	}
	next()
	if n := next(); n < 95 {
		t.Errorf("%d of 100 conversations stay without any reload, want 95", n)
	}
	_, port, _ := net.SplitHostPort(deadAddress(t))
	unrelated := g.text + "http://unrelated:" + port + " {\n\tbind 127.0.0.1\n\trespond ok\n}\n"
	if err := load(unrelated); err != nil {
		t.Fatal(err)
	}
	if n := next(); n < 95 {
		t.Errorf("%d of 100 conversations stay over a reload of an unrelated site, want 95", n)
	}
	if err := load(strings.Replace(g.text, engines[2].addr, engines[2].addr+" "+engines[3].addr, 1)); err != nil {
		t.Fatal(err)
	}
	if n := next(); n < 90 {
		t.Errorf("%d of 100 conversations stay when an upstream is added, want 90", n)
	}
	if _, series := g.metric("caddy_llm_prefix_index_entries"); series != 4 {
		t.Errorf("%d upstreams are known, want 4", series)
	}

	// Without the policy nothing of it is left.
	without := strings.Replace(g.text, "lb_policy llm_prefix {", "lb_policy random\n handle_response {", 1)
	without = without[:strings.Index(without, "handle_response {")] + "\n}\n}\n}\n"
	if err := load(without); err != nil {
		t.Fatalf("%v in\n%s", err, without)
	}
	if n, series := g.metric("caddy_llm_prefix_index_entries"); series != 0 {
		t.Errorf("a config without the policy still has %v blocks of %d upstreams", n, series)
	}
	eventually(t, "the poller has ended", func() bool { return goroutinesIn("scrape.(*Poller).Run") == 0 })

	// A restart knows nothing, and says so; each prompt then has one place, which
	// doesn't depend on what was known.
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := load(g.text); err != nil {
		t.Fatal(err)
	}
	a := g.insist("/v1/chat/completions", chat(user(text("conversation0", 2000)), nil))
	if !strings.Contains(a.route, "reason=cold") {
		t.Errorf("after a restart a prompt is decided by %q, want cold", a.route)
	}
	next()
	if n := next(); n < 95 {
		t.Errorf("%d of 100 conversations stay after a restart, want 95", n)
	}
}
