package caddyllm

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// report is what the admin API and the status page tell. In all of it, times
// are in seconds, null stands for what isn't known, and the window is the last
// five minutes.
type report struct {
	Time   time.Time     `json:"time"`
	States []stateReport `json:"states"`
}

// stateReport is one state: what the policies of that name know together.
type stateReport struct {
	Name          string `json:"name"`
	BlockBytes    int    `json:"block_bytes"`    // prompt bytes of a block
	WindowSeconds int    `json:"window_seconds"` // that counts are summed over
	StepSeconds   int    `json:"step_seconds"`   // between two points of a series, the newest last

	// Decisions within the window, by reason; `fallback` are requests without
	// a prompt.
	Decisions int            `json:"decisions"`
	Reasons   map[string]int `json:"reasons"`
	Failed    int            `json:"failed"` // attempts that ended within the window without an answer

	Cached     cachedReport     `json:"cached"`
	FirstToken firstTokenReport `json:"first_token"`
	Series     stateSeries      `json:"series"`

	Advice    []string         `json:"advice"` // what to look at, in sentences; empty if all is well
	Upstreams []upstreamReport `json:"upstreams"`
	// The last decisions, newest first.
	Last []decisionReport `json:"last_decisions"`
}

// cachedReport compares the prompt tokens that were predicted to be in an
// upstream's prefix cache with those that were, within the window.
type cachedReport struct {
	PromptTokens    int `json:"prompt_tokens"`    // of all prompts decided by, estimated
	PredictedTokens int `json:"predicted_tokens"` // of these, predicted to be cached
	// Of the answers that told their cached tokens.
	ToldPromptTokens    int      `json:"told_prompt_tokens"`
	ToldPredictedTokens int      `json:"told_predicted_tokens"`
	ToldCachedTokens    int      `json:"told_cached_tokens"`
	PredictedRatio      *float64 `json:"predicted_ratio"` // predicted_tokens by prompt_tokens
	ActualRatio         *float64 `json:"actual_ratio"`    // told_cached_tokens by told_prompt_tokens
}

// firstTokenReport compares predicted with actual times to the first token of
// streamed answers that began within the window.
type firstTokenReport struct {
	Count            int      `json:"count"`
	PredictedSeconds *float64 `json:"predicted_mean_seconds"`
	ActualSeconds    *float64 `json:"actual_mean_seconds"`
}

// stateSeries are points of step_seconds each.
type stateSeries struct {
	Decisions   []int      `json:"decisions"`
	CachedRatio []*float64 `json:"cached_ratio"` // told; predicted where no answer told
	FirstToken  []*float64 `json:"first_token_mean_seconds"`
}

// upstreamReport is one upstream.
type upstreamReport struct {
	Address string `json:"address"` // as the config has it
	// One of ok, cold, unscraped, unknown, stale, frozen, sleeping, failing,
	// unavailable and removed.
	State     string `json:"state"`
	Hint      string `json:"hint"` // what that means and what to do; empty if all is well
	Engine    string `json:"engine,omitempty"`
	Available bool   `json:"available"` // by the proxy's health checks and limits

	InFlight   inFlightReport `json:"inflight_requests"` // sent by this proxy
	Waiting    *float64       `json:"waiting_requests"`  // whoever sent them, by the last scrape
	Running    *float64       `json:"running_requests"`
	KVUsage    *float64       `json:"kv_usage_ratio"`
	ScrapeAge  *float64       `json:"scrape_age_seconds"` // of the last good scrape
	ScrapeFail string         `json:"scrape_error,omitempty"`
	Failures   int            `json:"failures"` // in a row

	PredictedWait float64 `json:"predicted_wait_seconds"` // until a prompt sent now is begun
	PrefillRate   float64 `json:"prefill_tokens_per_second"`
	CacheBlocks   int     `json:"cache_blocks"` // believed to be in its prefix cache
	CacheCapacity int     `json:"cache_capacity_blocks"`

	Decisions  int              `json:"decisions"`
	Share      float64          `json:"share_ratio"` // of the state's decisions
	Reasons    map[string]int   `json:"reasons"`
	Failed     int              `json:"failed"`
	Cached     cachedReport     `json:"cached"`
	FirstToken firstTokenReport `json:"first_token"`
	Series     upstreamSeries   `json:"series"`
}

// inFlightReport splits requests by phase.
type inFlightReport struct {
	Prefill int `json:"prefill"` // without a first token
	Decode  int `json:"decode"`
}

type upstreamSeries struct {
	Decisions []int      `json:"decisions"`
	Load      []*float64 `json:"load_requests"` // waiting and running, by scrapes
}

// decisionReport is one decision. Hashes tell prompts apart and say nothing of
// their text.
type decisionReport struct {
	Number        uint64    `json:"number"` // counted since the state began
	Time          time.Time `json:"time"`
	Upstream      string    `json:"upstream"`
	Reason        string    `json:"reason"`
	Kind          string    `json:"kind"`
	Attempt       int       `json:"attempt"`
	FirstBlock    string    `json:"first_block,omitempty"` // hash of the first block: equal where prompts begin alike
	Prompt        string    `json:"prompt,omitempty"`      // hash of the prompt to its last full block
	Blocks        int       `json:"blocks"`
	PromptTokens  int       `json:"prompt_tokens"`
	MatchedTokens int       `json:"matched_tokens"`
	CachedTokens  *int      `json:"cached_tokens"`
	Predicted     *float64  `json:"predicted_first_token_seconds"`
	FirstToken    *float64  `json:"first_token_seconds"`
	Took          *float64  `json:"duration_seconds"`
	Outcome       string    `json:"outcome"` // under_way, completed, cancelled, failed, rejected
}

// reportStates tells of the state of a name, of all if that is empty, with so
// many of its last decisions at most. It reports false if there is none.
func reportStates(now time.Time, name string, decisions int) (report, bool) {
	r := report{Time: now.UTC(), States: []stateReport{}}
	for _, named := range namedStates() {
		if named.called(name) {
			r.States = append(r.States, named.state.report(now, named.name, decisions))
		}
	}
	return r, name == "" || len(r.States) > 0
}

// called says whether a state may be asked for by a name: the one that it is
// listed by, or the one in the config, which others may share. Empty stands for
// all.
func (n namedState) called(name string) bool {
	return name == "" || n.name == name || n.state.name == name
}

func (s *state) report(now time.Time, name string, decisions int) stateReport {
	r := stateReport{
		Name: name, BlockBytes: s.block,
		WindowSeconds: int(stepSpan/time.Second) * keptSteps, StepSeconds: int(stepSpan / time.Second),
		Upstreams: []upstreamReport{},
	}
	var whole sums
	for _, u := range s.known(now) {
		one, sum := s.upstreamReport(now, &u)
		r.Upstreams = append(r.Upstreams, one)
		whole.add(&sum)
	}
	r.Decisions, r.Reasons, r.Failed = whole.decisions(), whole.reasonCounts(), whole.lost
	r.Cached, r.FirstToken = whole.cached(), whole.firstToken()
	r.Series = stateSeries{make([]int, keptSteps), make([]*float64, keptSteps), make([]*float64, keptSteps)}
	for i := range whole.steps {
		step := &whole.steps[i]
		r.Series.Decisions[i] = step.decisions()
		told := ratio(step.toldCached, step.told)
		if told == nil {
			told = ratio(step.matched, step.prompt)
		}
		r.Series.CachedRatio[i] = told
		r.Series.FirstToken[i] = step.firstToken().ActualSeconds
	}
	if r.Decisions > 0 {
		for i := range r.Upstreams {
			r.Upstreams[i].Share = round(float64(r.Upstreams[i].Decisions) / float64(r.Decisions))
		}
	}
	r.Last = reportDecisions(s.journal.decisions(decisions))
	r.Advice = advise(&r)
	return r
}

// view is what is known of one upstream.
type view struct {
	route.Upstream
	member    bool // of a loaded config
	available bool
	scraped   bool // its metrics are asked for
}

// known lists the upstreams that the configs name and those that the router
// remembers, by address.
func (s *state) known(now time.Time) []view {
	members := s.users.members()
	var all []view
	for _, u := range s.snapshot(now) {
		v := view{Upstream: u}
		if i, ok := slices.BinarySearchFunc(members, u.ID, func(m member, id string) int { return cmp.Compare(m.dial, id) }); ok {
			v.member, v.available, v.scraped = true, members[i].available, members[i].scraped
			members = slices.Delete(members, i, i+1)
		}
		all = append(all, v)
	}
	for _, m := range members {
		all = append(all, view{Upstream: route.Upstream{ID: m.dial}, member: true, available: m.available, scraped: m.scraped})
	}
	slices.SortFunc(all, func(a, b view) int {
		if a.member != b.member {
			if a.member {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return all[:min(len(all), maxLabels)]
}

func (s *state) upstreamReport(now time.Time, v *view) (upstreamReport, sums) {
	r := upstreamReport{
		Address: v.ID, Available: v.available,
		InFlight:      inFlightReport{v.Prefill, v.Decode},
		Failures:      v.Failures,
		PredictedWait: round(v.Queued), PrefillRate: round(v.Rate),
		CacheBlocks: v.Entries, CacheCapacity: v.Capacity,
	}
	// Old numbers would look like a queue that stands still.
	if v.Fresh || v.State == route.StateDoubtful || v.State == route.StateAsleep {
		r.Waiting, r.Running, r.KVUsage = numberOf(v.Load.Waiting), numberOf(v.Load.Running), numberOf(v.Load.KVUsage)
	}
	if v.Scraped {
		r.ScrapeAge = rounded(v.LoadAge.Seconds())
	}
	var sum sums
	s.journal.look(v.ID, func(l *ledger) {
		if l == nil {
			return
		}
		sum.of(l.window(now))
		r.Engine = l.engine
		r.ScrapeFail = l.reason
		if l.status != 0 && l.reason != "" {
			r.ScrapeFail = fmt.Sprintf("%s %d", l.reason, l.status)
		}
	})
	r.State, r.Hint = standing(v, r.ScrapeFail)
	r.Decisions, r.Reasons, r.Failed = sum.decisions(), sum.reasonCounts(), sum.lost
	r.Cached, r.FirstToken = sum.cached(), sum.firstToken()
	r.Series = upstreamSeries{make([]int, keptSteps), make([]*float64, keptSteps)}
	for i := range sum.steps {
		r.Series.Decisions[i] = sum.steps[i].decisions()
		if w := sum.steps[i].waiting; w >= 0 {
			r.Series.Load[i] = rounded(float64(w + sum.steps[i].running))
		}
	}
	return r, sum
}

func reportDecisions(all []decision) []decisionReport {
	reports := make([]decisionReport, 0, len(all))
	for i := range all {
		d := &all[i]
		r := decisionReport{
			Number: d.number,
			Time:   d.at.UTC().Truncate(time.Millisecond), Upstream: d.upstream, Reason: d.reason, Kind: d.kind.String(), Attempt: d.attempt,
			Blocks: d.blocks, PromptTokens: d.prompt, MatchedTokens: d.matched, Outcome: outcomes[d.outcome],
		}
		if d.blocks > 0 {
			r.FirstBlock, r.Prompt = shown(d.first), shown(d.last)
		}
		if d.cached >= 0 {
			r.CachedTokens = &d.cached
		}
		if d.prompt > 0 {
			r.Predicted = rounded(d.predicted.Seconds())
		}
		if d.actual > 0 {
			r.FirstToken = rounded(d.actual.Seconds())
		}
		if d.outcome != underWay {
			r.Took = rounded(d.took.Seconds())
		}
		reports = append(reports, r)
	}
	return reports
}

func numberOf(n route.Num) *float64 {
	if !n.Known {
		return nil
	}
	return rounded(n.Value)
}

// round leaves six digits behind the point: microseconds, and shares finer than
// a window can have. What is no number counts as none.
func round(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return math.Round(v*1e6) / 1e6
}

func rounded(v float64) *float64 {
	v = round(v)
	return &v
}
