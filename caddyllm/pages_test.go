package caddyllm

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// FC-72, FC-93: where an upstream's metrics are, for each form of address.
func TestFC72MetricsURLs(t *testing.T) {
	t.Setenv("METRICS_HOST", "metrics.local")
	s := settings{metricsURL: map[string]string{
		"gpu1:8000": "https://{env.METRICS_HOST}/gpu1?a=b",
		"gpu2:8000": "http://{env.METRICS_NONE}/metrics",
		"*":         "http://{host}:8002/by/{port}",
	}}
	for _, c := range []struct{ dial, want string }{
		{"gpu1:8000", "https://metrics.local/gpu1?a=b"},
		{"gpu2:8000", "error"}, // no value
		{"gpu3:8000", "http://gpu3:8002/by/8000"},
		{"gpu3.:8000", "http://gpu3.:8002/by/8000"},
		{"[::1]:9101", "http://[::1]:8002/by/9101"},
		{"[fe80::1%eth0]:9101", "http://[fe80::1%25eth0]:8002/by/9101"},
		{"10.0.0.1:9101", "http://10.0.0.1:8002/by/9101"},
		{"unix//run/u.sock", "error"}, // it has no host
	} {
		addr, err := caddy.ParseNetworkAddress(c.dial)
		if err != nil {
			t.Fatal(err)
		}
		got := "error"
		if u, err := s.pageURL(c.dial, addr); err == nil {
			got = u.String()
		}
		if got != c.want {
			t.Errorf("metrics of %s are at %s, want %s", c.dial, got, c.want)
		}
	}
	delete(s.metricsURL, "*")
	if u, err := s.pageURL("gpu3:8000", caddy.NetworkAddress{Host: "gpu3", StartPort: 8000}); u != nil || err != nil {
		t.Errorf("an upstream that no metrics_url is for: %v, %v, want neither", u, err)
	}
}

// A metrics path may have a query, and is at the upstream whatever it looks like.
func TestMetricsPaths(t *testing.T) {
	base := &url.URL{Scheme: "http", Host: "gpu1:8000"}
	for path, want := range map[string]string{
		"/metrics":               "http://gpu1:8000/metrics",
		"/metrics?model=a&b=%20": "http://gpu1:8000/metrics?model=a&b=%20",
		"/m%20x/":                "http://gpu1:8000/m%20x/",
		"/a/../b":                "http://gpu1:8000/b",
	} {
		if err := checkScrape(path); err != nil {
			t.Errorf("%s is refused: %v", path, err)
		}
		if got := below(base, path).String(); got != want {
			t.Errorf("%s is asked for at %s, want %s", path, got, want)
		}
	}
	for _, path := range []string{"metrics", "//elsewhere/metrics", "http://elsewhere/metrics", "/metrics#part", "/%zz", "?model=a"} {
		if err := checkScrape(path); err == nil {
			t.Errorf("%s is no path, and is taken", path)
		}
	}
}

// FC-104: what only a request could fill in is refused, so that no client says
// where a key goes.
func TestFC104ClientsCannotPointScrapes(t *testing.T) {
	for _, raw := range []string{"http://{http.request.host}/metrics", "http://{http.request.header.X-Up}/", "http://{nonsense}/"} {
		s := settings{metricsURL: map[string]string{"*": raw}}
		if err := s.checkPlaceholders(); err == nil || !strings.Contains(err.Error(), "metrics_url *") {
			t.Errorf("metrics_url %s: %v, want an error", raw, err)
		}
	}
	s := settings{metricsHeader: map[string]string{"Authorization": "{http.request.header.Authorization}"}}
	if err := s.checkPlaceholders(); err == nil || !strings.Contains(err.Error(), "metrics_header Authorization") {
		t.Errorf("a client's header as metrics_header: %v, want an error", err)
	}
}

// FC-72: a key comes from the environment or a file, and may be replaced.
func TestFC72KeysComeFromPlaceholders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	write := func(key string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("METRICS_KEY", "K1")
	write("K2")
	s := settings{metricsHeader: map[string]string{"Authorization": "Bearer {env.METRICS_KEY}", "X-Key": "{file." + file + "}"}}
	if err := s.checkPlaceholders(); err != nil {
		t.Fatal(err)
	}
	h := s.header()
	if h.Get("Authorization") != "Bearer K1" || h.Get("X-Key") != "K2" {
		t.Errorf("header %q, want K1 and K2", h)
	}
	write("K3")
	if h := s.header(); h.Get("X-Key") != "K3" {
		t.Errorf("header %q after the file has changed, want K3", h)
	}
}
