package caddyllm

import "time"

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
