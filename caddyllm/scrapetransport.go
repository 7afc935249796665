package caddyllm

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// scrapeTransport reaches upstreams as the proxy does, with its TLS settings,
// sockets and resolvers, but on connections of its own: with a bound on the
// proxy's, a scrape would have to wait just when an engine is busy.
type scrapeTransport struct {
	same      http.RoundTripper // to an upstream's own address
	elsewhere http.RoundTripper // to where metrics_url says
	scheme    reverseproxy.HealthCheckSchemeOverriderTransport
	options   string // what makes a scrape through it unlike another
	idle      []*http.Transport
}

func scrapesThrough(t *reverseproxy.HTTPTransport) *scrapeTransport {
	s := &scrapeTransport{scheme: t}
	// Two proxies of the same settings share scrapes.
	options, err := json.Marshal([]any{t.TLS, t.Versions, t.ProxyProtocol, t.LocalAddress, t.Resolver})
	if err == nil {
		s.options = string(options)
	}
	own := func() *http.Transport {
		c := t.Transport.Clone()
		c.MaxConnsPerHost = 0
		c.MaxIdleConns = 0
		c.MaxIdleConnsPerHost = 1
		c.DisableCompression = true
		s.idle = append(s.idle, c)
		return c
	}
	if slices.Equal(t.Versions, []string{"3"}) {
		s.same = t // only it knows how
	} else {
		s.same = own()
	}
	// Another port is likely to be that of a plain HTTP server.
	other := own()
	other.Protocols = nil
	if t.ProxyProtocol != "" {
		other.DialContext, other.DialTLSContext = nil, nil
	}
	s.elsewhere = other
	return s
}

func (s *scrapeTransport) close() {
	for _, t := range s.idle {
		t.CloseIdleConnections()
	}
}

// at gives the way to an upstream's own address, as the proxy's health checks
// take it.
func (s *scrapeTransport) at(addr caddy.NetworkAddress) (http.RoundTripper, *url.URL) {
	base := &url.URL{Scheme: "http", Host: addr.JoinHostPort(0)}
	port := strconv.FormatUint(uint64(addr.StartPort), 10)
	info := &reverseproxy.DialInfo{Network: addr.Network, Address: addr.JoinHostPort(0), Host: addr.Host, Port: port}
	if addr.IsUnixNetwork() {
		base.Host, info.Port = "localhost", ""
	}
	if s.scheme != nil {
		s.scheme.OverrideHealthCheckScheme(base, port)
	}
	return proxied{s.same, info}, base
}

// proxied sends requests with what the proxy's transport finds in the context
// of those of the proxy: the address to dial, which a server name of TLS may be
// made of, and the variables that it notes a network proxy in and reads the
// client's address from.
type proxied struct {
	rt   http.RoundTripper
	dial *reverseproxy.DialInfo // nil: as the URL says
}

// These equal the proxy's own unexported keys.
const (
	dialInfoKey      = caddy.CtxKey("reverse_proxy.dial_info")
	proxyProtocolKey = "reverse_proxy.proxy_protocol_info"
)

// RoundTrip implements http.RoundTripper.
func (p proxied) RoundTrip(req *http.Request) (*http.Response, error) {
	repl := caddy.NewReplacer()
	if d := p.dial; d != nil {
		repl.Set("http.reverse_proxy.upstream.address", d.String())
		repl.Set("http.reverse_proxy.upstream.hostport", d.Address)
		repl.Set("http.reverse_proxy.upstream.host", d.Host)
		repl.Set("http.reverse_proxy.upstream.port", d.Port)
	}
	ctx := context.WithValue(req.Context(), caddy.ReplacerCtxKey, repl)
	ctx = context.WithValue(ctx, caddyhttp.VarsCtxKey, map[string]any{
		proxyProtocolKey: reverseproxy.ProxyProtocolInfo{AddrPort: netip.AddrPortFrom(netip.IPv4Unspecified(), 0)},
	})
	if p.dial != nil {
		ctx = context.WithValue(ctx, dialInfoKey, *p.dial)
	}
	return p.rt.RoundTrip(req.WithContext(ctx))
}
