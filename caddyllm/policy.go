package caddyllm

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"
)

func init() {
	caddy.RegisterModule(LLMPrefix{})
}

// LLMPrefix is a selection policy for upstreams that serve large language
// models, such as vLLM. It reads the OpenAI-style request body, knows which
// upstream probably holds the beginning of the prompt in its prefix cache,
// scrapes each upstream's queue from its Prometheus metrics, counts its own
// requests in flight, and chooses the upstream whose first token will come
// soonest.
//
// A request without a prompt (a GET, an unknown path, a body that isn't JSON)
// goes to the fallback policy. The body is never altered; since the policy
// keeps it, `request_buffers` is not needed for retries.
//
// All options have defaults that are right for most; none needs tuning.
type LLMPrefix struct {
	// The name of what is learned about upstreams. Policies with the same
	// name, block, memory and secret share it, and a config reload keeps it.
	// Default: `default`.
	State string `json:"state,omitempty"`

	// How many bytes of a request body are looked into, 1 KiB to 256 MiB. A
	// larger body is streamed to the upstream; its beginning still gives
	// affinity where it holds the prompt. Each request keeps as much of its
	// body until its answer begins, so that a retry can send it again; a coded
	// body takes as much again while it is decoded. Default: 8 MiB.
	MaxBody int64 `json:"max_body,omitempty"`

	// Prompt bytes per hash block, 64 to 4096. Smaller blocks see shorter
	// common prefixes and take more memory. Default: 256.
	Block int `json:"block,omitempty"`

	// The bound of the index of prompt prefixes, in bytes, 1 MiB to 64 GiB,
	// over all upstreams of the state. Default: 256 MiB.
	Memory int64 `json:"memory,omitempty"`

	// The path of the upstreams' metrics, with a query if they need one, or
	// `off` to rely on own traffic alone. One redirect to the same host and port is followed. Default:
	// `/metrics`, and `/prometheus/metrics` or `/v1/metrics` for upstreams that
	// have no page there.
	Scrape string `json:"scrape,omitempty"`

	// How often each upstream's metrics are fetched, 50ms to 1m, with a
	// jitter of 10 %. An upstream that fails is asked less often.
	// Default: 1s.
	ScrapeInterval caddy.Duration `json:"scrape_interval,omitempty"`

	// Where the metrics of an upstream are, if not at its own address: a URL
	// by the upstream's dial address, or by `*` for all that aren't named.
	// `{host}` and `{port}` stand for the upstream's, an IPv6 address in
	// brackets; other placeholders may be those that need no request, such
	// as `{env.*}`. The proxy's TLS settings hold there too. Triton has its
	// metrics at `http://{host}:8002/metrics`. Default: none.
	MetricsURL map[string]string `json:"metrics_url,omitempty"`

	// Header fields of the requests for metrics, by name, such as a key.
	// Values may have placeholders that need no request, such as
	// `{env.METRICS_KEY}` or `{file./run/secrets/key}`; they are evaluated
	// for each scrape. The header is sent to where the upstream's metrics
	// are, and not to another host or port that these redirect to. Default:
	// none.
	MetricsHeader map[string]string `json:"metrics_header,omitempty"`

	// Whether a request is sent again when the idle connection that it was
	// written to turns out to have been closed by the upstream. Engines
	// close idle connections early (vLLM after 5 seconds), and inference has
	// no side effects, so the default is true.
	RetryStale *bool `json:"retry_stale,omitempty"`

	// What hashes of prompts are seeded with, beside the state's name, the
	// model and the request's `cache_salt`; gateways that shall agree on where
	// new prompts go need the same. Who doesn't know it can't compute which
	// upstream a new prompt would go to. It may have placeholders that need no
	// request, such as `{env.PROMPT_SECRET}`; they must have a value.
	// Default: none.
	Secret string `json:"secret,omitempty"`

	// The name of a request header that names a session. A session stays on
	// its upstream while that costs it no more than its prompt is worth, also
	// if its prompts never repeat: where each one begins with the time, say.
	// Where the header is absent, vLLM's `session_id` in the body serves.
	// Clients choose the value, and with it no more than whom they are with.
	// Default: none.
	SessionHeader string `json:"session_header,omitempty"`

	// The name of a response header that tells the decision: the upstream,
	// the reason, and the tokens of the prompt. It shows upstream addresses
	// to clients. Default: none.
	Expose string `json:"expose,omitempty"`

	// The policy for requests without a prompt. Default: `least_conn`.
	FallbackRaw json.RawMessage `json:"fallback,omitempty" caddy:"namespace=http.reverse_proxy.selection_policies inline_key=policy"`

	fallback  reverseproxy.Selector
	settings  settings
	shared    *state
	loaded    bool
	upstreams *upstreams
	logger    *zap.Logger
}

// Bounds and defaults of the options.
const (
	defaultState          = "default"
	defaultMaxBody        = 8 << 20
	minMaxBody            = 1 << 10
	maxMaxBody            = 256 << 20
	defaultBlock          = 256
	minBlock              = 64
	maxBlock              = 4096
	defaultMemory         = 256 << 20
	minMemory             = 1 << 20
	maxMemory             = 64 << 30
	scrapeOff             = "off"
	defaultScrapeInterval = time.Second
	minScrapeInterval     = 50 * time.Millisecond
	maxScrapeInterval     = time.Minute
)

// CaddyModule returns the Caddy module information.
func (LLMPrefix) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.reverse_proxy.selection_policies.llm_prefix",
		New: func() caddy.Module { return new(LLMPrefix) },
	}
}

// Provision sets up the policy: it loads the fallback policy, joins the shared
// state, and puts its observer round the proxy's transport.
func (p *LLMPrefix) Provision(ctx caddy.Context) error {
	p.logger = ctx.Logger()
	if err := p.Validate(); err != nil {
		return err
	}
	p.settings = p.withDefaults()
	if err := p.settings.checkPlaceholders(); err != nil {
		return err
	}
	if err := p.settings.sow(p.Secret); err != nil {
		return err
	}

	// With the default policy no module is loaded through FallbackRaw, so
	// that the config which the admin API shows stays the user's.
	p.fallback = new(reverseproxy.LeastConnSelection)
	if p.FallbackRaw != nil {
		mod, err := ctx.LoadModule(p, "FallbackRaw")
		if err != nil {
			return fmt.Errorf("loading fallback selection policy: %w", err)
		}
		p.fallback = mod.(reverseproxy.Selector)
	}
	if err := registerMetrics(ctx.GetMetricsRegistry()); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	shared, err := loadState(p.settings)
	if err != nil {
		return fmt.Errorf("loading state %q: %w", p.settings.state, err)
	}
	p.shared, p.loaded = shared, true

	p.upstreams, err = attach(ctx, p)
	if err != nil {
		return fmt.Errorf("observing the proxy's transport: %w", err)
	}
	shared.users.join(p.upstreams)
	return p.upstreams.awaitStart(ctx)
}

// Validate checks the options' ranges, with the Caddyfile's names for them.
func (p *LLMPrefix) Validate() error {
	return errors.Join(
		checkRange("max_body", p.MaxBody, minMaxBody, maxMaxBody),
		checkRange("block", int64(p.Block), minBlock, maxBlock),
		checkRange("memory", p.Memory, minMemory, maxMemory),
		checkRange("scrape_interval", time.Duration(p.ScrapeInterval), minScrapeInterval, maxScrapeInterval),
		checkScrape(p.Scrape),
		p.checkPages(),
		checkHeaderName("session_header", p.SessionHeader),
		checkExpose(p.Expose),
	)
}

// Cleanup leaves the shared state. Requests of the old config may outlive it
// and still call Select, so nothing that they use is cleared.
func (p *LLMPrefix) Cleanup() error {
	if p.upstreams != nil {
		p.upstreams.detach()
	}
	if !p.loaded {
		return nil
	}
	p.loaded = false
	return p.shared.release()
}

// loadFallback reads the policy that follows the option's name.
func loadFallback(d *caddyfile.Dispenser) (json.RawMessage, error) {
	if !d.NextArg() {
		return nil, d.ArgErr()
	}
	name := d.Val()
	modID := "http.reverse_proxy.selection_policies." + name
	unm, err := caddyfile.UnmarshalModule(d, modID)
	if err != nil {
		return nil, err
	}
	sel, ok := unm.(reverseproxy.Selector)
	if !ok {
		return nil, d.Errf("module %s (%T) is not a reverseproxy.Selector", modID, unm)
	}
	return caddyconfig.JSONModuleObject(sel, "policy", name, nil), nil
}

// Interface guards
var (
	_ caddy.Provisioner     = (*LLMPrefix)(nil)
	_ caddy.Validator       = (*LLMPrefix)(nil)
	_ caddy.CleanerUpper    = (*LLMPrefix)(nil)
	_ caddyfile.Unmarshaler = (*LLMPrefix)(nil)
	_ reverseproxy.Selector = (*LLMPrefix)(nil)
)
