package caddyllm

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"
)

// UnmarshalCaddyfile sets up the policy from Caddyfile tokens. Syntax:
//
//	lb_policy llm_prefix {
//	    state           <name>
//	    max_body        <size>
//	    block           <bytes>
//	    memory          <size>
//	    scrape          <path>|off
//	    scrape_interval <duration>
//	    metrics_url     <upstream>|* <url>
//	    metrics_header  <name> <value>
//	    retry_stale     on|off
//	    secret          <text>
//	    session_header  <header>
//	    expose          <header>
//	    fallback        <policy> [...]
//	}
//
// Each option may stand once, metrics_url once for each upstream, and
// metrics_header once for each name.
func (p *LLMPrefix) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume policy name
	if d.NextArg() {
		return d.ArgErr()
	}
	seen := make(map[string]bool)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		option := d.Val()
		if setPair, ok := pairOptions[option]; ok {
			var key, value string
			if !d.AllArgs(&key, &value) {
				return argErr(d, option)
			}
			if err := setPair(p, key, value); err != nil {
				return d.WrapErr(err)
			}
			continue
		}
		set, ok := options[option]
		if !ok && option != "fallback" {
			return d.Errf("unrecognized llm_prefix option '%s'", option)
		}
		if seen[option] {
			return d.Errf("llm_prefix option '%s' already specified", option)
		}
		seen[option] = true

		if option == "fallback" {
			raw, err := loadFallback(d)
			if err != nil {
				return err
			}
			p.FallbackRaw = raw
			continue
		}
		var arg string
		if !d.AllArgs(&arg) {
			return argErr(d, option)
		}
		if arg == "" {
			return d.Errf("%s must not be empty", option)
		}
		if err := set(p, arg); err != nil {
			return d.WrapErr(err)
		}
	}
	return nil
}

// argErr says that an option has too few or too many arguments. The usual words
// for it repeat the last one, which may be a key.
func argErr(d *caddyfile.Dispenser, option string) error {
	if option == "secret" || option == "metrics_header" {
		return d.Errf("wrong argument count for '%s'", option)
	}
	return d.ArgErr()
}

// options are those that take one argument.
var options = map[string]func(p *LLMPrefix, arg string) error{
	"state": func(p *LLMPrefix, arg string) error {
		p.State = arg
		return nil
	},
	"max_body": func(p *LLMPrefix, arg string) (err error) {
		p.MaxBody, err = parseSize("max_body", arg, minMaxBody, maxMaxBody)
		return err
	},
	"block": func(p *LLMPrefix, arg string) error {
		n, err := parseSize("block", arg, minBlock, maxBlock)
		p.Block = int(n)
		return err
	},
	"memory": func(p *LLMPrefix, arg string) (err error) {
		p.Memory, err = parseSize("memory", arg, minMemory, maxMemory)
		return err
	},
	"scrape": func(p *LLMPrefix, arg string) error {
		p.Scrape = arg
		return checkScrape(arg)
	},
	"scrape_interval": func(p *LLMPrefix, arg string) error {
		v, err := caddy.ParseDuration(arg)
		if err != nil {
			return fmt.Errorf("scrape_interval must be a duration such as 500ms, got '%s'", arg)
		}
		if v < minScrapeInterval || v > maxScrapeInterval {
			return fmt.Errorf("scrape_interval must be from %v to %v, got '%s'", minScrapeInterval, maxScrapeInterval, arg)
		}
		p.ScrapeInterval = caddy.Duration(v)
		return nil
	},
	"retry_stale": func(p *LLMPrefix, arg string) error {
		if arg != "on" && arg != "off" {
			return fmt.Errorf("retry_stale must be on or off, got '%s'", arg)
		}
		on := arg == "on"
		p.RetryStale = &on
		return nil
	},
	"secret": func(p *LLMPrefix, arg string) error {
		p.Secret = arg
		return nil
	},
	"session_header": func(p *LLMPrefix, arg string) error {
		p.SessionHeader = arg
		return checkHeaderName("session_header", arg)
	},
	"expose": func(p *LLMPrefix, arg string) error {
		p.Expose = arg
		return checkExpose(arg)
	},
}

// pairOptions are those that take two arguments and may be repeated with
// another first one.
var pairOptions = map[string]func(p *LLMPrefix, key, value string) error{
	"metrics_url": func(p *LLMPrefix, upstream, at string) error {
		// The upstreams' own lines may have a scheme, which the dial address
		// lacks; and in a Caddyfile, {host} is short for a client's.
		if _, address, ok := strings.Cut(upstream, "://"); ok {
			upstream = address
		}
		at = ownPlaceholders.Replace(at)
		return addPair(&p.MetricsURL, "metrics_url", upstream, at, checkMetricsURL)
	},
	"metrics_header": func(p *LLMPrefix, name, value string) error {
		return addPair(&p.MetricsHeader, "metrics_header", http.CanonicalHeaderKey(name), value, checkMetricsHeader)
	},
}

var ownPlaceholders = strings.NewReplacer("{http.request.host}", "{host}", "{http.request.port}", "{port}")

func addPair(to *map[string]string, option, key, value string, check func(key, value string) error) error {
	if _, ok := (*to)[key]; ok {
		return fmt.Errorf("llm_prefix option '%s %s' already specified", option, key)
	}
	if *to == nil {
		*to = make(map[string]string)
	}
	(*to)[key] = value
	return check(key, value)
}

// parseSize reads bytes with or without a unit. Zero is out of range here; in
// JSON it stands for the default.
func parseSize(option, arg string, low, high uint64) (int64, error) {
	n, err := humanize.ParseBytes(arg)
	if err != nil {
		return 0, fmt.Errorf("%s must be a size such as 4096 or 8MiB, got '%s'", option, arg)
	}
	if n < low || n > high {
		return 0, fmt.Errorf("%s must be from %s to %s, got '%s'", option, size(low), size(high), arg)
	}
	return int64(n), nil
}

func size(n uint64) string { return strings.ReplaceAll(humanize.IBytes(n), " ", "") }
