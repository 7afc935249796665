// Package gateway runs Caddy in front of upstreams under one load balancing
// policy, for comparisons.
package gateway

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

// Gateway is a running Caddy.
type Gateway struct {
	*process.Child
	// Address, Metrics and Admin are host:port of the proxy, of Caddy's own
	// metrics page, at /metrics, and of the admin endpoint; those are empty
	// unless asked for.
	Address, Metrics, Admin string

	dir string
}

// Config is what differs between gateways.
type Config struct {
	Policy    string
	Upstreams []string // host:port
	// Metrics asks for Caddy's own metrics page.
	Metrics bool
	// Admin asks for Caddy's admin endpoint, which reloads need.
	Admin bool
	// Proxy has further lines for the reverse_proxy, More further sites.
	Proxy, More string
}

// caddyfile is the same for every policy but for its name. Idle connections are
// given up a second before vLLM's server closes them, so that no policy pays for
// a race that is not its own; and what no upstream has begun to answer is sent
// to another, since inference has no side effects.
func (g *Gateway) caddyfile(c Config) string {
	admin := "off"
	if g.Admin != "" {
		admin = g.Admin
	}
	var more strings.Builder
	for line := range strings.Lines(c.Proxy) {
		fmt.Fprintf(&more, "\t\t%s\n", strings.TrimSuffix(line, "\n"))
	}
	text := fmt.Sprintf(`{
	admin %s
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
%s	}
}
`, admin, filepath.Join(g.dir, "access.log"), site(g.Address), strings.Join(c.Upstreams, " "), c.Policy, &more)
	if g.Metrics != "" {
		text += fmt.Sprintf("\n%s\n\tmetrics /metrics\n}\n", site(g.Metrics))
	}
	return text + c.More
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
	g := &Gateway{dir: dir}
	var err error
	for address, wanted := range map[*string]bool{&g.Address: true, &g.Metrics: c.Metrics, &g.Admin: c.Admin} {
		if !wanted {
			continue
		}
		if *address, err = process.FreeAddress(); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(dir, "Caddyfile")
	text := g.caddyfile(c)
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

// Reload makes Caddy run another config, at the same addresses. The error is
// Caddy's own if it refuses that; then it goes on with the one before.
func (g *Gateway) Reload(ctx context.Context, c Config) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+g.Admin+"/load", strings.NewReader(g.caddyfile(c)))
	if err != nil {
		return fmt.Errorf("reloading: %w", err)
	}
	req.Header.Set("Content-Type", "text/caddyfile")
	// As "caddy reload --force" has it: an equal config is loaded, too.
	req.Header.Set("Cache-Control", "must-revalidate")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("reloading: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil || res.StatusCode != http.StatusOK {
		return &RefusedError{Status: res.StatusCode, Text: string(text)}
	}
	return nil
}

// maxAnswer bounds what is read of the admin endpoint's answers.
const maxAnswer = 64 << 10

// RefusedError is Caddy's refusal of a config.
type RefusedError struct {
	Status int
	Text   string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("reloading: status %d: %s", e.Status, strings.TrimSpace(e.Text))
}
