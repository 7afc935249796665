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

// explanation says where a request would go now, and why. Terms are in seconds
// and add up to the cost, but for rounding to microseconds; the least cost wins.
type explanation struct {
	State string `json:"state"`
	Path  string `json:"path"`
	Kind  string `json:"kind"` // of prompt, by the path
	// Why the fallback policy would choose instead; then there is neither a
	// choice nor terms.
	Fallback  string          `json:"fallback,omitempty"`
	Prompt    *promptLengths  `json:"prompt,omitempty"`
	Choice    *foreseen       `json:"choice,omitempty"`
	Upstreams []upstreamTerms `json:"upstreams"` // best first
}

// promptLengths is what the decision knows of the prompt.
type promptLengths struct {
	Bytes      int    `json:"bytes"`
	Tokens     int    `json:"tokens"` // estimate
	Blocks     int    `json:"blocks"`
	FirstBlock string `json:"first_block,omitempty"` // hash
	Hash       string `json:"prompt,omitempty"`      // hash to the last full block
	MaxTokens  int    `json:"max_tokens,omitempty"`
	Stream     bool   `json:"stream"`
}

type foreseen struct {
	Upstream string `json:"upstream"`
	Reason   string `json:"reason"`
	// What decided: `cost`; `tie` where several cost the same within 3 %, and
	// the first token's time and a hash of the prompt chose among them;
	// `session` where its upstream is kept though another costs less;
	// `response` where only one has the response that the prompt goes on from.
	DecidedBy  string  `json:"decided_by"`
	FirstToken float64 `json:"predicted_first_token_seconds"`
}

// upstreamTerms is what one upstream would cost the request: cost_seconds is
// the sum of queue, prefill, stall, copy, memory and step.
type upstreamTerms struct {
	Address string `json:"address"`
	// `sound`; `suspect` is chosen only if no other is sound. The others are not
	// chosen at all and have no terms: `unavailable` by the proxy's health checks
	// and limits, `lacks_response` that the prompt goes on from.
	Standing      string  `json:"standing"`
	MatchedTokens int     `json:"matched_tokens"`
	MatchedBlocks int     `json:"matched_blocks"`
	Queue         float64 `json:"queue_seconds"`   // work before this request
	Prefill       float64 `json:"prefill_seconds"` // its own
	Stall         float64 `json:"stall_seconds"`   // what it takes from those that decode there
	Copy          float64 `json:"copy_seconds"`    // what a copy of a popular prefix there is worth: 0 or less
	Memory        float64 `json:"memory_seconds"`  // until there is room for its KV blocks
	Step          float64 `json:"step_seconds"`    // until the step in progress ends
	Cost          float64 `json:"cost_seconds"`
	FirstToken    float64 `json:"predicted_first_token_seconds"` // queue, prefill, memory and step
}

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

func lengths(q *route.Request, saw *route.Foresight) *promptLengths {
	l := &promptLengths{Bytes: q.Bytes, Tokens: saw.PromptTokens, Blocks: len(q.Chain), MaxTokens: q.MaxTokens, Stream: q.Stream}
	if n := len(q.Chain); n > 0 {
		l.FirstBlock, l.Hash = shown(q.Chain[0]), shown(q.Chain[n-1])
	}
	return l
}

// tell ranks the upstreams: the choice, then the others as they would follow.
func (e *explanation) tell(saw *route.Foresight) {
	chosen := saw.Terms[saw.Index].ID
	e.Choice = &foreseen{Upstream: chosen, Reason: string(saw.Reason), DecidedBy: "cost", FirstToken: round(saw.FirstToken.Seconds())}
	switch {
	case saw.Homing:
		e.Choice.DecidedBy = "session"
	case saw.Tie:
		e.Choice.DecidedBy = "tie"
	}
	terms := slices.Clone(saw.Terms)
	slices.SortStableFunc(terms, func(a, b route.Terms) int {
		if a.ID == chosen || b.ID == chosen {
			return cmp.Compare(b2i(b.ID == chosen), b2i(a.ID == chosen))
		}
		return cmp.Or(cmp.Compare(b2i(a.Last), b2i(b.Last)), cmp.Compare(a.Cost, b.Cost))
	})
	for _, t := range terms {
		u := upstreamTerms{
			Address: t.ID, Standing: "sound", MatchedTokens: t.MatchedTokens, MatchedBlocks: t.MatchedBlocks,
			Queue: round(t.Queue), Prefill: round(t.Prefill), Stall: round(t.Stall), Copy: round(0 - t.Copy),
			Memory: round(t.Memory), Step: round(t.Step), Cost: round(t.Cost), FirstToken: round(t.First),
		}
		if t.Last {
			u.Standing = "suspect"
		}
		e.Upstreams = append(e.Upstreams, u)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
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
