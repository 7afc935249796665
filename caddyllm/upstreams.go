package caddyllm

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/scrape"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// upstreams is all that a policy knows of the proxy it selects for: its
// transport, and the upstreams that its config names. This file alone knows
// Caddy's Handler and Upstream.
type upstreams struct {
	policy    *LLMPrefix
	transport http.RoundTripper           // for scrapes; nil if the policy has no proxy
	own       *reverseproxy.HTTPTransport // made here because the config names none
	static    []string                    // dial addresses in the config
	blind     bool                        // answers can't be observed
}

// attach finds the proxy that the policy is being provisioned for and puts the
// observer round its transport. It works because a proxy loads its transport
// before its policy, makes the default one later and only if there is none,
// and asks for nothing but interfaces that the observer has too.
func attach(ctx caddy.Context, p *LLMPrefix) (*upstreams, error) {
	u := &upstreams{policy: p, blind: true}
	// Asked now, since a stored context's ancestry is overwritten by siblings.
	var h *reverseproxy.Handler
	for _, m := range slices.Backward(ctx.Modules()) {
		if found, ok := m.(*reverseproxy.Handler); ok {
			h = found
			break
		}
	}
	if h == nil {
		return u, nil // not below a proxy: own counts still work
	}
	for _, up := range h.Upstreams {
		u.static = append(u.static, up.Dial)
	}
	switch t := h.Transport.(type) {
	case nil:
		u.own = new(reverseproxy.HTTPTransport)
		if err := u.own.Provision(ctx); err != nil {
			return nil, err
		}
		h.Transport = &observer{u.own, p}
		u.transport, u.blind = u.own, false
	case *reverseproxy.HTTPTransport:
		h.Transport = &observer{t, p}
		u.transport, u.blind = t, false
	case *observer: // another policy of this proxy was there first
		u.transport = t.HTTPTransport
	default:
		u.transport = t
	}
	return u, nil
}

// scrapeOnceStarted begins to scrape the config's upstreams when the config is
// in force. Validating a config, or failing to load one, must not.
func (u *upstreams) scrapeOnceStarted(ctx caddy.Context) error {
	if u.transport == nil || u.policy.settings.scrapePath == "" {
		return nil
	}
	app, err := ctx.AppIfConfigured("events")
	if err != nil {
		return nil // no Caddy round us; every proxy configures this app
	}
	return app.(*caddyevents.App).On("started", starter{u})
}

// starter is an event handler; the policy itself shall not look like one.
type starter struct{ u *upstreams }

// Handle implements caddyevents.Handler.
func (s starter) Handle(context.Context, caddy.Event) error {
	for _, dial := range s.u.static {
		s.u.scrape(dial, 0)
	}
	s.u.policy.shared.startPolling()
	return nil
}

// unseenAfter is how long an upstream from a dynamic source is scraped after
// the last request that went there.
const unseenAfter = 10 * time.Minute

// seen begins to scrape upstreams that the config doesn't name.
func (u *upstreams) seen(dial string) {
	if u.transport == nil || u.policy.settings.scrapePath == "" || slices.Contains(u.static, dial) {
		return
	}
	u.scrape(dial, unseenAfter)
}

func (u *upstreams) scrape(dial string, expiry time.Duration) {
	// An address that a request decides on can't be asked without one.
	addr, err := resolve(dial)
	if err != nil {
		u.policy.logger.Debug("not scraping upstream", zap.String("upstream", dial), zap.Error(err))
		return
	}
	u.policy.shared.poller.Set(u, dial, u.policy.settings.scrapeInterval, expiry, u.fetcher(addr))
}

// detach ends what attach and the scrapes began.
func (u *upstreams) detach() {
	if u.policy.shared != nil {
		u.policy.shared.poller.Drop(u)
	}
	if u.own != nil {
		_ = u.own.Cleanup() // closes idle connections; it can't fail
	}
}

func resolve(dial string) (caddy.NetworkAddress, error) {
	dial, err := caddy.NewReplacer().ReplaceOrErr(dial, true, true)
	if err != nil {
		return caddy.NetworkAddress{}, err
	}
	addr, err := caddy.ParseNetworkAddress(dial)
	if err != nil {
		return addr, err
	}
	if addr.PortRangeSize() != 1 && !addr.IsUnixNetwork() {
		return addr, fmt.Errorf("%s has more than one port", dial)
	}
	return addr, nil
}

// fetcher asks for an upstream's metrics as the proxy's health checks ask:
// through the proxy's transport, so that TLS and unix sockets work alike.
func (u *upstreams) fetcher(addr caddy.NetworkAddress) scrape.Fetch {
	target := &url.URL{Scheme: "http", Host: addr.JoinHostPort(0), Path: u.policy.settings.scrapePath}
	port := strconv.FormatUint(uint64(addr.StartPort), 10)
	info := reverseproxy.DialInfo{Network: addr.Network, Address: addr.JoinHostPort(0), Host: addr.Host, Port: port}
	if addr.IsUnixNetwork() {
		target.Host, info.Port = "localhost", ""
	}
	if o, ok := u.transport.(reverseproxy.HealthCheckSchemeOverriderTransport); ok {
		o.OverrideHealthCheckScheme(target, port)
	}
	transport := u.transport
	return func(ctx context.Context) (io.ReadCloser, int, string, error) {
		ctx = context.WithValue(ctx, caddy.ReplacerCtxKey, caddy.NewReplacer())
		ctx = context.WithValue(ctx, dialInfoKey, info)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
		if err != nil {
			return nil, 0, "", err
		}
		req.Header.Set("User-Agent", "caddy-llm-prefix")
		req.Header.Set("Accept", "text/plain;version=0.0.4;q=1,*/*;q=0.1")
		res, err := transport.RoundTrip(req)
		if err != nil {
			return nil, 0, "", err
		}
		return res.Body, res.StatusCode, res.Header.Get("Content-Type"), nil
	}
}

// dialInfoKey equals the proxy's own unexported key: the key's type is
// exported, and the transport finds the address to dial by it.
const dialInfoKey = caddy.CtxKey("reverse_proxy.dial_info")

// available lists the upstreams that the proxy may use now, as targets of the
// decision; the two slices go together.
func available(pool reverseproxy.UpstreamPool, tried []string) ([]route.Target, []*reverseproxy.Upstream) {
	targets := make([]route.Target, 0, len(pool))
	ups := make([]*reverseproxy.Upstream, 0, len(pool))
	for _, u := range pool {
		if u.Available() {
			targets = append(targets, route.Target{ID: u.Dial, Tried: slices.Contains(tried, u.Dial)})
			ups = append(ups, u)
		}
	}
	return targets, ups
}

// untried is the pool without the upstreams that this request was sent to
// before, or the whole pool if none of the others is available.
func untried(pool reverseproxy.UpstreamPool, tried []string) reverseproxy.UpstreamPool {
	if len(tried) == 0 {
		return pool
	}
	var others reverseproxy.UpstreamPool
	usable := false
	for _, u := range pool {
		if !slices.Contains(tried, u.Dial) {
			others = append(others, u)
			usable = usable || u.Available()
		}
	}
	if !usable {
		return pool
	}
	return others
}
