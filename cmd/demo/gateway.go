package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// caddyfile is the same for every policy but for its name. Idle connections are
// given up a second before vLLM's server closes them, so that no policy pays for
// a race that is not its own.
func caddyfile(listen, policy string, upstreams []string, log string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		host, port = "127.0.0.1", listen
	}
	return fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	grace_period 1s
	log {
		output file %q
	}
}

http://:%s {
	bind %s
	reverse_proxy %s {
		lb_policy %s
		lb_retries 2
		transport http {
			keepalive 4s
		}
	}
}
`, log, port, host, strings.Join(upstreams, " "), policy)
}

// startGateway starts a Caddy with the policy in front of the upstreams and
// waits until it listens. Everything it writes goes below dir.
func startGateway(ctx context.Context, dir, path, policy string, upstreams []string) (*child, string, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	file := filepath.Join(dir, "Caddyfile")
	text := caddyfile(address, policy, upstreams, filepath.Join(dir, "access.log"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, "", fmt.Errorf("writing the Caddyfile: %w", err)
	}
	env := []string{
		"HOME=" + dir, "XDG_DATA_HOME=" + filepath.Join(dir, "data"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"),
	}
	c, err := start(dir, path, env, "run", "--config", file, "--adapter", "caddyfile")
	if err != nil {
		return nil, "", err
	}
	if err := c.await(ctx, func() bool { return answers(address) }); err != nil {
		c.stop()
		return nil, "", err
	}
	return c, address, nil
}

// freeAddress finds a port that was free a moment ago. Caddy can't tell which
// one it got when asked for any; should another program be faster, Caddy fails
// to start and says so.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func answers(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
