package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/gateway"
)

// exposed is the header in which Caddy tells who answered.
const exposed = "X-LLM"

// configs are those that Caddy is reloaded with in turn, none of which changes
// what is known of the servers, and those that it must refuse. The address taken
// is listened at.
func configs(upstreams []string, taken string) (good, bad []gateway.Config) {
	base := gateway.Config{
		Upstreams: upstreams, Metrics: true, Admin: true,
		Policy: "llm_prefix {\n\t\t\texpose " + exposed + "\n\t\t\tmemory 1MiB\n\t\t\tscrape_interval 250ms\n\t\t}",
		// What an engine refuses for now is asked of another, too.
		Proxy: "lb_retries 6\nlb_retry_match {\n\texpression `{rp.status_code} in [429, 503]`\n}\n",
	}
	with := func(change func(*gateway.Config)) gateway.Config {
		c := base
		change(&c)
		return c
	}
	good = []gateway.Config{
		base,
		with(func(c *gateway.Config) { c.Policy = strings.Replace(c.Policy, "250ms", "500ms", 1) }),
		with(func(c *gateway.Config) { c.Proxy += "fail_duration 2s\n" }),
		with(func(c *gateway.Config) { c.Proxy += "request_buffers 1MiB\n" }),
		with(func(c *gateway.Config) {
			c.Proxy += "health_uri /health\nhealth_interval 500ms\nhealth_timeout 400ms\n"
		}),
	}
	bad = []gateway.Config{
		with(func(c *gateway.Config) { c.Policy = "llm_prefix {\n nonsense 1\n}" }),
		with(func(c *gateway.Config) { c.Policy = "llm_prefix {\n block 5\n}" }),
		// Refused only when all of it is set up and a port is taken.
		with(func(c *gateway.Config) {
			host, port, _ := strings.Cut(taken, ":")
			c.More = fmt.Sprintf("\nhttp://:%s {\n\tbind %s\n\treverse_proxy nowhere:1 {\n\t\tlb_policy llm_prefix\n\t}\n}\n", port, host)
		}),
		with(func(c *gateway.Config) {
			c.Proxy += "lb_policy llm_prefix {\n metrics_url nobody:1 http://{host}/\n}\n"
		}),
	}
	return good, bad
}

// panics counts those that Caddy's logs tell of, whoever's they are.
func panics(dir string) (n int, err error) {
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) < 2 { // its own, and that of its standard error
		return 0, fmt.Errorf("looking for logs: there are %d: %w", len(logs), err)
	}
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, fmt.Errorf("reading a log: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "panic") || strings.Contains(line, "fault of llm_prefix") {
				n++
			}
		}
	}
	return n, nil
}
