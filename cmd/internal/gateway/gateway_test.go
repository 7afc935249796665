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
		got := caddyfile("127.0.0.1:4000", "", Config{Policy: policy, Upstreams: upstreams}, "/x/access.log")
		if wanted := strings.Replace(want, "llm_prefix", policy, 1); got != wanted {
			t.Errorf("caddyfile(%s) =\n%s\nwant\n%s", policy, got, wanted)
		}
	}
}

func TestTheMetricsHaveASiteOfTheirOwn(t *testing.T) {
	c := Config{Policy: "random", Upstreams: []string{"127.0.0.1:1"}}
	with, without := caddyfile("127.0.0.1:4000", "127.0.0.1:4001", c, "l"), caddyfile("127.0.0.1:4000", "", c, "l")
	want := without + "\nhttp://:4001 {\n\tbind 127.0.0.1\n\tmetrics /metrics\n}\n"
	if with != want {
		t.Errorf("caddyfile with metrics =\n%s\nwant\n%s", with, want)
	}
}
