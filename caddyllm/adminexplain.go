package caddyllm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// maxUpstreamsAsked bounds the upstreams that an explanation may be narrowed to.
const maxUpstreamsAsked = 1000

func (adminAPI) explain(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	name, path := query.Get("state"), query.Get("path")
	if path == "" {
		path = "/v1/chat/completions"
	}
	asked := query["upstream"]
	if len(asked) > maxUpstreamsAsked {
		return refuse(http.StatusBadRequest, "at most %d upstreams can be named", maxUpstreamsAsked)
	}
	var shared *state
	for _, named := range namedStates() {
		if named.name == cmp.Or(name, defaultState) {
			shared = named.state
			break
		}
		if shared == nil && named.called(name) {
			shared = named.state
		}
	}
	if shared == nil {
		return noState(cmp.Or(name, defaultState))
	}
	p := shared.users.newest()
	if p == nil {
		return noState(shared.name)
	}
	e, err := p.foresee(r, path, asked)
	if err != nil {
		return err
	}
	return answer(w, e)
}

// foresee explains what would become of a request to path with asking's body
// and header.
func (p *LLMPrefix) foresee(asking *http.Request, path string, asked []string) (*explanation, error) {
	req, err := http.NewRequestWithContext(asking.Context(), http.MethodPost, "http://gateway/", asking.Body)
	if err != nil {
		return nil, refuse(http.StatusInternalServerError, "making the request: %w", err)
	}
	req.URL.Path, req.Header, req.ContentLength = path, asking.Header.Clone(), asking.ContentLength

	f := &flight{Context: req.Context(), policy: p}
	f.classify(req)
	e := &explanation{State: p.shared.name, Path: path, Kind: f.kind.String(), Fallback: f.why, Upstreams: []upstreamTerms{}}
	if f.why != "" {
		return e, nil
	}
	if f.body = readBody(req, p.settings.maxBody); f.body != nil {
		defer f.body.land()
	}
	if f.body == nil || len(f.body.kept) == 0 && f.body.whole {
		return nil, refuse(http.StatusBadRequest, "the body is empty; it must be that of a request to %s", path)
	}
	if f.body.err != nil {
		return nil, refuse(http.StatusBadRequest, "reading the body: %w", f.body.err)
	}
	var scanner prompt.Scanner
	q, previous, why := f.read(&scanner, req)
	if why == whyBroken {
		return nil, refuse(http.StatusBadRequest, "%s", brokenAt(f.body.kept))
	}
	if e.Fallback = why; why != "" {
		return e, nil
	}
	targets, out, err := p.targets(f.session, asked)
	if err != nil {
		return nil, err
	}
	from, to := narrow(p.shared.responses.peek(previous), targets)
	saw, ok := p.shared.foresee(time.Now(), &q, targets[from:to])
	e.Prompt = lengths(&q, &saw)
	if ok {
		e.tell(&saw)
		if to-from < len(targets) {
			e.Choice.Reason, e.Choice.DecidedBy = string(route.ReasonSession), "response"
			for i, t := range targets {
				if i < from || i >= to {
					e.Upstreams = append(e.Upstreams, upstreamTerms{Address: t.ID, Standing: "lacks_response"})
				}
			}
		}
	}
	for _, address := range out {
		e.Upstreams = append(e.Upstreams, upstreamTerms{Address: address, Standing: "unavailable"})
	}
	return e, nil
}

func (s *state) foresee(now time.Time, q *route.Request, targets []route.Target) (route.Foresight, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.router.Foresee(now, q, targets)
}

// targets are the upstreams that a request would be offered, and those that it
// would not. Where several proxies share the state, asked may name one's.
func (p *LLMPrefix) targets(session uint64, asked []string) (targets []route.Target, out []string, err error) {
	home := p.shared.sessions.peek(session)
	members := p.shared.users.members()
	for _, address := range asked {
		if !slices.ContainsFunc(members, func(m member) bool { return m.dial == address }) {
			return nil, nil, refuse(http.StatusNotFound, "there is no upstream %q; GET /llm_prefix/state lists them", address)
		}
	}
	for _, m := range members {
		switch {
		case len(asked) > 0 && !slices.Contains(asked, m.dial):
		case m.available:
			targets = append(targets, route.Target{ID: m.dial, Home: session != 0 && m.dial == home})
		default:
			out = append(out, m.dial)
		}
	}
	return targets, out, nil
}

// brokenAt says where a body stops being JSON. It doesn't repeat the body.
func brokenAt(body []byte) string {
	err := json.Unmarshal(body, new(json.RawMessage))
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return "the body is JSON, but none that engines accept: it is no object, or nested too deep"
	}
	offset := int(min(max(syntax.Offset, 0), int64(len(body))))
	before := body[:max(offset-1, 0)]
	line := 1 + bytes.Count(before, []byte{'\n'})
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1) + 1
	what := syntax.Error()
	if i := strings.Index(what, "character "); i >= 0 {
		what = "unexpected character" // which one is the client's data
	}
	return fmt.Sprintf("the body is not JSON: %s at byte %d, line %d, column %d", what, offset, line, column)
}
