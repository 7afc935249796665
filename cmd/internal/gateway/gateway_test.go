package gateway

import (
	"strings"
	"testing"
)

func TestTheCaddyfilesDifferOnlyInThePolicy(t *testing.T) {
	upstreams := []string{"127.0.0.1:1", "127.0.0.1:2"}
	want := `{
	admin off
	persist_config off
	auto_https off
	grace_period 1s
	log {
		output file "/x/access.log"
	}
}

http://:4000 {
	bind 127.0.0.1
	reverse_proxy 127.0.0.1:1 127.0.0.1:2 {
		lb_policy llm_prefix
		lb_retries 2
		lb_retry_match {
			method POST
		}
		transport http {
			keepalive 4s
		}
	}
}
`
	for _, policy := range []string{"llm_prefix", "round_robin", "least_conn"} {
		g := Gateway{Address: "127.0.0.1:4000", dir: "/x"}
		got := g.caddyfile(Config{Policy: policy, Upstreams: upstreams})
		if wanted := strings.Replace(want, "llm_prefix", policy, 1); got != wanted {
			t.Errorf("caddyfile(%s) =\n%s\nwant\n%s", policy, got, wanted)
		}
	}
}

func TestTheMetricsHaveASiteOfTheirOwn(t *testing.T) {
	c := Config{Policy: "random", Upstreams: []string{"127.0.0.1:1"}}
	plain := Gateway{Address: "127.0.0.1:4000"}
	shown := Gateway{Address: "127.0.0.1:4000", Metrics: "127.0.0.1:4001"}
	with, without := shown.caddyfile(c), plain.caddyfile(c)
	want := without + "\nhttp://:4001 {\n\tbind 127.0.0.1\n\tmetrics /metrics\n}\n"
	if with != want {
		t.Errorf("caddyfile with metrics =\n%s\nwant\n%s", with, want)
	}
}

func TestWhatAConfigAdds(t *testing.T) {
	g := Gateway{Address: "127.0.0.1:4000", Admin: "127.0.0.1:4001"}
	c := Config{Policy: "random", Upstreams: []string{"127.0.0.1:1"}, Proxy: "lb_retries 6\nmax_fails 3", More: "http://:5000 {\n}\n"}
	got := g.caddyfile(c)
	for _, want := range []string{"\tadmin 127.0.0.1:4001\n", "\t\tlb_retries 6\n\t\tmax_fails 3\n\t}\n}\n", "\nhttp://:5000 {\n}\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("caddyfile =\n%s\nwant in it %q", got, want)
		}
	}
}
