package caddyllm

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/scrape"
)

// upstreams is all that a policy knows of the proxy it selects for: its
// transport, and the upstreams that its config names. This file alone knows
// Caddy's Handler and Upstream.
type upstreams struct {
	policy  *LLMPrefix
	scrapes *scrapeTransport            // nil if the policy has no proxy
	own     *reverseproxy.HTTPTransport // made here because the config names none
	static  []string                    // dial addresses in the config
	offered *offered                    // nil if there are no others
	blind   bool                        // answers can't be observed
	proxy   *reverseproxy.Handler       // nil if there is none
	begun   atomic.Bool                 // the config is in force: proxy is whole
}

// writeBuffer is that of each connection to an upstream, bytes. With the usual
// 4 KiB a prompt leaves in two writes, the second of them through 32 KiB that
// net/http allocates for each request.
const writeBuffer = 64 << 10

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
	u.proxy = h
	for _, up := range h.Upstreams {
		u.static = append(u.static, up.Dial)
	}
	if h.DynamicUpstreamsRaw != nil || h.DynamicUpstreams != nil {
		u.offered = &offered{at: make(map[string]time.Time), asked: asksRequests(h)}
	}
	switch t := h.Transport.(type) {
	case nil:
		u.own = &reverseproxy.HTTPTransport{WriteBufferSize: writeBuffer}
		if err := u.own.Provision(ctx); err != nil {
			return nil, err
		}
		h.Transport = &observer{u.own, p}
		u.scrapes, u.blind = scrapesThrough(u.own), false
	case *reverseproxy.HTTPTransport:
		h.Transport = &observer{t, p}
		u.scrapes, u.blind = scrapesThrough(t), false
	case *observer: // another policy of this proxy was there first
		u.scrapes = scrapesThrough(t.HTTPTransport)
	default:
		u.scrapes = &scrapeTransport{same: t, elsewhere: new(http.Transport)}
	}
	return u, u.checkNames()
}

// checkNames finds a metrics_url for an upstream that isn't there.
func (u *upstreams) checkNames() error {
	if u.offered != nil {
		return nil // it may come
	}
	for name := range u.policy.settings.metricsURL {
		if name != anyUpstream && !slices.Contains(u.static, name) {
			return fmt.Errorf("metrics_url names %s, which is none of the upstreams %s", name, strings.Join(u.static, ", "))
		}
	}
	return nil
}

func (u *upstreams) scraping() bool {
	return u.scrapes != nil && len(u.policy.settings.scrapePaths) > 0
}

// awaitStart has what begins with the config begin when that is in force.
func (u *upstreams) awaitStart(ctx caddy.Context) error {
	app, err := ctx.AppIfConfigured("events")
	if err != nil {
		return nil // no Caddy round us; every proxy configures this app
	}
	return app.(*caddyevents.App).On("started", starter{u})
}

// starter is an event handler; the policy itself shall not look like one.
type starter struct{ u *upstreams }

// Handle begins to scrape the config's upstreams. Validating a config, or
// failing to load one, must not.
func (s starter) Handle(context.Context, caddy.Event) error {
	defer s.u.policy.catch(inScrape)
	s.u.begun.Store(true)
	if !s.u.scraping() {
		return nil
	}
	for _, dial := range s.u.static {
		if err := s.u.scrape(dial, 0); err != nil {
			s.u.policy.logger.Info("upstream's metrics are not scraped", zap.String("upstream", dial), zap.Error(err))
		}
	}
	s.u.policy.shared.poller.run()
	return nil
}

// scrape has an upstream scraped from now on.
func (u *upstreams) scrape(dial string, expiry time.Duration) error {
	// An address that a request decides on can't be asked without one.
	addr, err := resolve(dial)
	if err != nil {
		return err
	}
	s := &u.policy.settings
	job := scrape.Job{
		Owner: u, Sink: u.policy.shared, Upstream: dial,
		Interval: s.scrapeInterval, Expiry: expiry,
	}
	key := []string{dial, u.scrapes.options}
	for _, name := range slices.Sorted(maps.Keys(s.metricsHeader)) {
		key = append(key, name, s.metricsHeader[name])
	}
	ask := func(rt http.RoundTripper, at *url.URL) {
		job.Places = append(job.Places, scrape.HTTP(rt, at, s.header))
		key = append(key, at.String())
	}
	elsewhere, err := s.pageURL(dial, addr)
	switch {
	case err != nil:
		return err
	case elsewhere != nil:
		ask(proxied{rt: u.scrapes.elsewhere}, elsewhere)
	default:
		rt, base := u.scrapes.at(addr)
		for _, path := range s.scrapePaths {
			ask(rt, below(base, path))
		}
	}
	job.Key = strings.Join(key, "\x00")
	u.policy.shared.poller.Set(job)
	return nil
}

// below is a path, which may have a query, at an upstream.
func below(base *url.URL, path string) *url.URL {
	ref, err := url.Parse(path)
	if err != nil {
		return base.JoinPath(path) // checkScrape lets none of these through
	}
	at := base.JoinPath(ref.EscapedPath())
	at.RawQuery = ref.RawQuery
	return at
}

// member is an upstream that a policy would choose among.
type member struct {
	dial      string
	available bool // by the proxy's health checks and limits, as far as it tells
	scraped   bool // its metrics are asked for
}

// members lists the config's upstreams, and those that a dynamic source offered
// last, which count as available.
func (u *upstreams) members() (all []member) {
	scraped := u.scraping()
	if u.begun.Load() && u.proxy != nil {
		for _, up := range u.proxy.Upstreams {
			all = append(all, member{up.Dial, up.Available(), scraped})
		}
	} else {
		for _, dial := range u.static {
			all = append(all, member{dial, true, scraped})
		}
	}
	if u.offered != nil {
		for _, dial := range u.offered.latest() {
			all = append(all, member{dial, true, scraped})
		}
	}
	return all
}

// detach ends what attach and the scrapes began.
func (u *upstreams) detach() {
	if u.policy.shared != nil {
		u.policy.shared.users.leave(u)
		u.policy.shared.poller.Drop(u)
	}
	if u.scrapes != nil {
		u.scrapes.close()
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
