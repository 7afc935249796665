package caddyllm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
)

func init() {
	caddy.RegisterModule(adminAPI{})
}

// adminAPI adds to Caddy's admin API:
//
//	GET    /llm_prefix/state[?state=<name>]
//	POST   /llm_prefix/explain[?path=<path>][&state=<name>][&upstream=<address>...]
//	DELETE /llm_prefix/upstreams/<address>/cache[?state=<name>]
//
// The first tells what is known of the upstreams and which decisions were made;
// a report has its fields. The second takes the body of a request and answers
// where that would go now and what each upstream would cost it, an explanation;
// nothing is sent and nothing is learned. The third forgets what is believed to
// be in an upstream's prefix cache. Who may ask is the admin endpoint's own
// matter.
type adminAPI struct{}

// CaddyModule returns the Caddy module information.
func (adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.llm_prefix",
		New: func() caddy.Module { return new(adminAPI) },
	}
}

// Routes implements caddy.AdminRouter.
func (a adminAPI) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		{Pattern: "/llm_prefix/state", Handler: only(http.MethodGet, a.state)},
		{Pattern: "/llm_prefix/explain", Handler: only(http.MethodPost, a.explain)},
		{Pattern: "/llm_prefix/upstreams/{address}/cache", Handler: only(http.MethodDelete, a.forget)},
	}
}

// only lets one method through.
func only(method string, serve caddy.AdminHandlerFunc) caddy.AdminHandler {
	return caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != method {
			w.Header().Set("Allow", method)
			return refuse(http.StatusMethodNotAllowed, "method %s is not allowed here, only %s", r.Method, method)
		}
		return serve(w, r)
	})
}

func (adminAPI) state(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("state")
	report, ok := reportStates(time.Now(), name, keptDecisions)
	if !ok {
		return noState(name)
	}
	return answer(w, report)
}

// forgotten is the answer to a DELETE of a cache.
type forgotten struct {
	Upstream string `json:"upstream"`
	Blocks   int    `json:"blocks"` // that were believed to be in its cache
}

func (adminAPI) forget(w http.ResponseWriter, r *http.Request) error {
	address, name := r.PathValue("address"), r.URL.Query().Get("state")
	result, stateKnown, known := forgotten{Upstream: address}, false, false
	for _, named := range namedStates() {
		s := named.state
		if !named.called(name) {
			continue
		}
		stateKnown = true
		blocks, ok := s.forget(address)
		result.Blocks += blocks
		known = known || ok || slices.ContainsFunc(s.users.members(), func(m member) bool { return m.dial == address })
	}
	switch {
	case name != "" && !stateKnown:
		return noState(name)
	case !known:
		return refuse(http.StatusNotFound, "there is no upstream %q; GET /llm_prefix/state lists them", address)
	}
	return answer(w, result)
}

func (s *state) forget(upstream string) (blocks int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.router.Forget(upstream)
}

func noState(name string) error {
	var names []string
	for _, named := range namedStates() {
		names = append(names, named.name)
	}
	if len(names) == 0 {
		return refuse(http.StatusNotFound, "there is no state %q: no loaded configuration has lb_policy llm_prefix", name)
	}
	return refuse(http.StatusNotFound, "there is no state %q, only %s", name, strings.Join(names, ", "))
}

// refuse makes an error that the admin endpoint answers with.
func refuse(status int, format string, args ...any) error {
	return caddy.APIError{HTTPStatus: status, Err: fmt.Errorf(format, args...)}
}

func answer(w http.ResponseWriter, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return refuse(http.StatusInternalServerError, "encoding the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(text, '\n')) // an error means that whoever asked has left
	return nil
}

// Interface guards
var _ caddy.AdminRouter = (*adminAPI)(nil)
