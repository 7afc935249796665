package caddyllm

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"golang.org/x/net/http/httpguts"
)

// defaultPaths are where engines have their metrics: nearly all at the first,
// trtllm-serve, which has JSON there, at the second, NIM at the third.
var defaultPaths = []string{"/metrics", "/prometheus/metrics", "/v1/metrics"}

// anyUpstream stands in metrics_url for all that aren't named.
const anyUpstream = "*"

// checkMetricsURL says what is wrong with one metrics_url. Its errors don't
// repeat the URL, which may hold a password that shouldn't be there.
func checkMetricsURL(upstream, raw string) error {
	if upstream == "" {
		return errors.New("metrics_url must name an upstream, or * for all")
	}
	// Placeholders may stand for any part; what they come to is checked when
	// the config is loaded.
	if plain := plainURL.Replace(raw); !strings.Contains(plain, "{") {
		_, err := parseMetricsURL(plain)
		return err
	}
	return nil
}

// plainURL makes a URL that can be checked before its upstream is known.
var plainURL = strings.NewReplacer("{host}", "host", "{port}", "80")

func parseMetricsURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("metrics_url must be a URL such as http://{host}:9090/metrics")
	case u.User != nil:
		return nil, errors.New("metrics_url must have no user or password; use metrics_header Authorization")
	case u.Fragment != "":
		return nil, errors.New("metrics_url must have no fragment")
	}
	return u, nil
}

// Headers that the transport sets itself, and what it can't read.
var fixedHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// checkMetricsHeader says what is wrong with one metrics_header. Its errors
// don't repeat the value, which is a key.
func checkMetricsHeader(name, value string) error {
	if name == "" || !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("metrics_header must be the name of a header and its value, got %q", name)
	}
	if slices.Contains(fixedHeaders, http.CanonicalHeaderKey(name)) {
		return fmt.Errorf("metrics_header can't set %s", http.CanonicalHeaderKey(name))
	}
	if value == "" || !httpguts.ValidHeaderFieldValue(value) {
		return fmt.Errorf("metrics_header %s must have a value that a header can hold", name)
	}
	return nil
}

// checkPages checks all that says where and how metrics are asked for.
func (p *LLMPrefix) checkPages() error {
	var errs []error
	if p.Scrape == scrapeOff && len(p.MetricsURL)+len(p.MetricsHeader) > 0 {
		errs = append(errs, errors.New("metrics_url and metrics_header have no use with scrape off"))
	}
	for _, upstream := range slices.Sorted(maps.Keys(p.MetricsURL)) {
		errs = append(errs, checkMetricsURL(upstream, p.MetricsURL[upstream]))
	}
	seen := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(p.MetricsHeader)) {
		errs = append(errs, checkMetricsHeader(name, p.MetricsHeader[name]))
		if key := http.CanonicalHeaderKey(name); seen[key] {
			errs = append(errs, fmt.Errorf("metrics_header %s is set twice", key))
		} else {
			seen[key] = true
		}
	}
	return errors.Join(errs...)
}

// checkPlaceholders refuses what only a request could fill in: a client must
// not say where the policy sends its key. A placeholder without a value now
// may have one later, as a file that is mounted.
func (s *settings) checkPlaceholders() error {
	repl := caddy.NewReplacer()
	for _, name := range slices.Sorted(maps.Keys(s.metricsHeader)) {
		if _, err := repl.ReplaceOrErr(s.metricsHeader[name], false, true); err != nil {
			return fmt.Errorf("evaluating metrics_header %s: %w", name, err)
		}
	}
	repl.Set("host", "host")
	repl.Set("port", "80")
	for _, upstream := range slices.Sorted(maps.Keys(s.metricsURL)) {
		if _, err := repl.ReplaceOrErr(s.metricsURL[upstream], false, true); err != nil {
			return fmt.Errorf("evaluating metrics_url %s: %w", upstream, err)
		}
	}
	return nil
}

// pageURL is where the metrics of an upstream are by metrics_url; nil if they
// are at its own address.
func (s *settings) pageURL(dial string, addr caddy.NetworkAddress) (*url.URL, error) {
	raw, ok := s.metricsURL[dial]
	if !ok {
		raw, ok = s.metricsURL[anyUpstream]
	}
	if !ok {
		return nil, nil
	}
	repl := caddy.NewReplacer()
	if !addr.IsUnixNetwork() && !addr.IsFdNetwork() {
		host := addr.Host
		if strings.Contains(host, ":") {
			host = "[" + strings.Replace(host, "%", "%25", 1) + "]" // a zone's sign
		}
		repl.Set("host", host)
		repl.Set("port", strconv.FormatUint(uint64(addr.StartPort), 10))
	}
	text, err := repl.ReplaceOrErr(raw, true, true)
	if err != nil {
		return nil, fmt.Errorf("evaluating metrics_url: %w", err)
	}
	return parseMetricsURL(text)
}

// header makes the header of a scrape, anew each time: a key may be replaced
// while Caddy runs.
func (s *settings) header() http.Header {
	repl := caddy.NewReplacer()
	h := make(http.Header, len(s.metricsHeader))
	for name, value := range s.metricsHeader {
		h[name] = []string{repl.ReplaceAll(value, "")}
	}
	return h
}
