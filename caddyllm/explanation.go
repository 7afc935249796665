package caddyllm

import (
	"cmp"
	"slices"

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
