package caddyllm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() {
	caddy.RegisterModule(LLMStatus{})
	httpcaddyfile.RegisterHandlerDirective("llm_status", parseStatus)
	httpcaddyfile.RegisterDirectiveOrder("llm_status", httpcaddyfile.Before, "respond")
}

// LLMStatus is a handler that shows what `lb_policy llm_prefix` knows of its
// upstreams, and which decisions it made, as a page that needs nothing from
// elsewhere. `state.json` beside the page has the same as JSON, and `events`
// has it once a second as server-sent events. All links are relative, so that it
// may stand below any path.
//
// It shows addresses of upstreams and how much they are used, to all who reach
// it, and never text of a prompt. Guard it with `basic_auth` or `remote_ip`.
//
// While nobody looks, it costs no more than the policy's notes: a few
// assignments for each request, a ring of the last decisions, and 6 KB for each
// upstream.
type LLMStatus struct {
	// The name of the state to show. Default: all states.
	State string `json:"state,omitempty"`

	ended chan struct{} // closed when the config is about to end
	once  *sync.Once
	cache *statusCache
}

// CaddyModule returns the Caddy module information.
func (LLMStatus) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.llm_status",
		New: func() caddy.Module { return new(LLMStatus) },
	}
}

// Provision sets up the handler.
func (s *LLMStatus) Provision(ctx caddy.Context) error {
	s.ended, s.once, s.cache = make(chan struct{}), new(sync.Once), &statusCache{state: s.State}
	app, err := ctx.AppIfConfigured("events")
	if err != nil {
		return nil // no Caddy round us
	}
	// A server that shuts down waits for its requests, before it cancels their
	// config's context: event streams must end first.
	return app.(*caddyevents.App).On("stopping", stopper{s})
}

// stopper is an event handler; LLMStatus itself shall not look like one.
type stopper struct{ s *LLMStatus }

// Handle ends the event streams. Pages connect again, to the next config.
func (s stopper) Handle(context.Context, caddy.Event) error {
	s.s.end()
	return nil
}

func (s *LLMStatus) end() { s.once.Do(func() { close(s.ended) }) }

// Cleanup ends the event streams of a config that never stopped because it
// never started.
func (s *LLMStatus) Cleanup() error {
	if s.once != nil {
		s.end()
	}
	return nil
}

// errNoState says that nobody has the state that the handler is for.
var errNoState = errors.New("there is no such state")

func (s *LLMStatus) serveState(w http.ResponseWriter, r *http.Request) error {
	text, err := s.cache.get(time.Now())
	if err != nil {
		return caddyhttp.Error(http.StatusNotFound, err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodGet {
		_, _ = w.Write(text) // an error means that whoever asked has left
	}
	return nil
}

// statusCache makes one report for all who look at about the same time.
type statusCache struct {
	state string

	mu   sync.Mutex // guards the rest; held while a report is made
	at   time.Time
	text []byte
	err  error
}

const (
	// statusFresh is for how long a report is shown again.
	statusFresh = 500 * time.Millisecond
	// statusDecisions bounds the decisions that the page lists.
	statusDecisions = 50
)

func (c *statusCache) get(now time.Time) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if age := now.Sub(c.at); age >= 0 && age < statusFresh {
		return c.text, c.err
	}
	c.at, c.text, c.err = now, nil, nil
	report, ok := reportStates(now, c.state, statusDecisions)
	if !ok {
		c.err = fmt.Errorf("%w: %q", errNoState, c.state)
		return nil, c.err
	}
	c.text, c.err = json.Marshal(report)
	return c.text, c.err
}

// parseStatus sets up the handler from Caddyfile tokens. Syntax:
//
//	llm_status [<matcher>] [<state>]
func parseStatus(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	s := new(LLMStatus)
	return s, s.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens.
func (s *LLMStatus) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	if d.NextArg() {
		s.State = d.Val()
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	if d.NextBlock(0) {
		return d.Errf("unrecognized llm_status option '%s'", d.Val())
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*LLMStatus)(nil)
	_ caddy.CleanerUpper          = (*LLMStatus)(nil)
	_ caddyhttp.MiddlewareHandler = (*LLMStatus)(nil)
	_ caddyfile.Unmarshaler       = (*LLMStatus)(nil)
)
