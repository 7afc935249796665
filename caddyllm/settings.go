package caddyllm

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"golang.org/x/net/http/httpguts"
)

// settings are the options with their defaults filled in, so that the
// exported fields keep showing what the user wrote.
type settings struct {
	state          string
	maxBody        int64
	block          int
	memory         int64
	scrapePaths    []string // in the order to be tried; none: off
	scrapeInterval time.Duration
	metricsURL     map[string]string // by dial address
	metricsHeader  map[string]string // names are canonical
	retryStale     bool
	sessionHeader  string
	expose         string
	seed           uint64 // of hashes
	mark           string // tells secrets apart; empty without one
}

// checkRange accepts zero, which stands for the default.
func checkRange[T int64 | time.Duration](option string, v, low, high T) error {
	if v != 0 && (v < low || v > high) {
		return fmt.Errorf("%s must be from %v to %v, got %v", option, low, high, v)
	}
	return nil
}

func checkScrape(path string) error {
	if path == "" || path == scrapeOff {
		return nil
	}
	if at, err := url.Parse(path); err != nil || !strings.HasPrefix(path, "/") || at.Host != "" || at.Fragment != "" {
		return fmt.Errorf("scrape must be a path that begins with '/', or 'off', got %q", path)
	}
	return nil
}

func checkHeaderName(option, name string) error {
	if name != "" && !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("%s must be the name of a header, got %q", option, name)
	}
	return nil
}

func checkExpose(name string) error {
	if name := http.CanonicalHeaderKey(name); slices.Contains(ownHeaders, name) {
		return fmt.Errorf("expose can't set %s, which says how the answer is to be read", name)
	}
	return checkHeaderName("expose", name)
}

// ownHeaders are those of an answer that a second value would break.
var ownHeaders = []string{
	"Connection", "Content-Encoding", "Content-Length", "Content-Type", "Date", "Location", "Trailer", "Transfer-Encoding", "Upgrade",
}

func (p *LLMPrefix) withDefaults() settings {
	s := settings{
		state:          p.State,
		maxBody:        p.MaxBody,
		block:          p.Block,
		memory:         p.Memory,
		scrapePaths:    []string{p.Scrape},
		metricsURL:     p.MetricsURL,
		metricsHeader:  make(map[string]string, len(p.MetricsHeader)),
		scrapeInterval: time.Duration(p.ScrapeInterval),
		retryStale:     p.RetryStale == nil || *p.RetryStale,
		sessionHeader:  http.CanonicalHeaderKey(p.SessionHeader),
		expose:         http.CanonicalHeaderKey(p.Expose),
	}
	if s.state == "" {
		s.state = defaultState
	}
	if s.maxBody == 0 {
		s.maxBody = defaultMaxBody
	}
	if s.block == 0 {
		s.block = defaultBlock
	}
	if s.memory == 0 {
		s.memory = defaultMemory
	}
	switch p.Scrape {
	case "":
		s.scrapePaths = defaultPaths
	case scrapeOff:
		s.scrapePaths = nil
	}
	for name, value := range p.MetricsHeader {
		s.metricsHeader[http.CanonicalHeaderKey(name)] = value
	}
	if s.scrapeInterval == 0 {
		s.scrapeInterval = defaultScrapeInterval
	}
	return s
}

// sow makes the seed of hashes of the state's name and the secret. The mark may
// be seen in a state's name, so nothing can be learned from it.
func (s *settings) sow(secret string) error {
	secret, err := caddy.NewReplacer().ReplaceOrErr(secret, true, true)
	if err != nil {
		return fmt.Errorf("evaluating secret: %w", err)
	}
	sum := sha256.Sum256([]byte("llm_prefix\x00" + s.state + "\x00" + secret))
	s.seed = binary.LittleEndian.Uint64(sum[:])
	if s.mark = ""; secret != "" {
		s.mark = keyed(sum[:])
	}
	return nil
}
