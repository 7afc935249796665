// Package gateway runs Caddy in front of upstreams under one load balancing
// policy, for comparisons.
package gateway

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

// Gateway is a running Caddy.
type Gateway struct {
	*process.Child
	// Address and Metrics are host:port of the proxy and of Caddy's own
	// metrics page, at /metrics; the latter is empty unless asked for.
	Address, Metrics string
}

// Config is what differs between gateways.
type Config struct {
	Policy    string
	Upstreams []string // host:port
	// Metrics asks for Caddy's own metrics page.
	Metrics bool
}

// caddyfile is the same for every policy but for its name. Idle connections are
// given up a second before vLLM's server closes them, so that no policy pays for
// a race that is not its own; and what no upstream has begun to answer is sent
// to another, since inference has no side effects.
func caddyfile(listen, metrics string, c Config, log string) string {
	text := fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	grace_period 1s
	log {
		output file %q
	}
}

%s
	reverse_proxy %s {
		lb_policy %s
		lb_retries 2
		lb_retry_match {
			method POST
		}
		transport http {
			keepalive 4s
		}
	}
}
`, log, site(listen), strings.Join(c.Upstreams, " "), c.Policy)
	if metrics != "" {
		text += fmt.Sprintf("\n%s\n\tmetrics /metrics\n}\n", site(metrics))
	}
	return text
}

// site is the address of a site and the line that binds it.
func site(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = "127.0.0.1", address
	}
	return fmt.Sprintf("http://:%s {\n\tbind %s", port, host)
}

// Start starts a Caddy and waits until it listens. Everything it writes goes
// below dir.
func Start(ctx context.Context, dir, path string, c Config) (*Gateway, error) {
	g := &Gateway{}
	var err error
	if g.Address, err = process.FreeAddress(); err != nil {
		return nil, err
	}
	if c.Metrics {
		if g.Metrics, err = process.FreeAddress(); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(dir, "Caddyfile")
	text := caddyfile(g.Address, g.Metrics, c, filepath.Join(dir, "access.log"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("writing the Caddyfile: %w", err)
	}
	env := []string{
		"HOME=" + dir, "XDG_DATA_HOME=" + filepath.Join(dir, "data"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"),
	}
	g.Child, err = process.Start(process.Spec{Path: path, Dir: dir, Env: env, Args: []string{"run", "--config", file, "--adapter", "caddyfile"}})
	if err != nil {
		return nil, err
	}
	if err := g.Await(ctx, func() bool { return process.Answers(g.Address) }); err != nil {
		g.Stop()
		return nil, err
	}
	return g, nil
}
