package caddyllm

import (
	"fmt"
	"slices"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/scrape"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// The states of an upstream, worst first: of several that hold, the first is
// told.
const (
	stateRemoved     = "removed"     // no loaded config names it any more
	stateUnavailable = "unavailable" // Caddy's health checks or limits leave it out
	stateFailing     = "failing"     // its last requests failed
	stateFrozen      = "frozen"      // it has work, and nothing comes of it
	stateSleeping    = "sleeping"    // its page says that it sleeps
	stateUnscraped   = "unscraped"   // its metrics aren't asked for: scrape is off
	stateUnknown     = "unknown"     // its queue was never seen
	stateStale       = "stale"       // its queue was seen too long ago to count
	stateCold        = "cold"        // nothing is believed to be in its prefix cache
	stateOK          = "ok"
)

// standing says in a word how an upstream is, and in a sentence or two what
// that means and what to do.
func standing(v *view, scrapeError string) (state, hint string) {
	switch {
	case !v.member:
		return stateRemoved, "No loaded configuration names it any more. It is forgotten an hour after its last request or scrape."
	case !v.available:
		return stateUnavailable, "Caddy leaves it out: health checks failed, or it has as many requests as it may have. See health_uri, fail_duration and unhealthy_request_count."
	case v.Failures > 0:
		return stateFailing, fmt.Sprintf("The last %d requests in a row failed there. It gets one now and then until one is answered. See its log.", v.Failures)
	case v.State == route.StateDoubtful:
		return stateFrozen, "It has requests, and neither answers nor metrics move. It gets one now and then to see. Is the engine stuck? See its log, or restart it."
	case v.State == route.StateAsleep:
		return stateSleeping, "The engine sleeps and gets no requests while others are awake. POST /wake_up wakes it."
	case !v.scraped && v.State != route.StateFresh:
		return stateUnscraped, ""
	case v.State == route.StateStale:
		return stateStale, "Its queue was seen too long ago to count, so it is routed to by own traffic alone. " + scrapeHint(scrapeError)
	case v.State != route.StateFresh:
		return stateUnknown, "Its queue can't be seen, so it is routed to by own traffic alone. " + scrapeHint(scrapeError)
	case v.Entries == 0 && v.Capacity == 0:
		return stateCold, "The engine keeps no prefixes: it was started without prefix caching, so only its queue counts."
	case v.Entries == 0:
		return stateCold, "No prompt was sent there yet, or its cache was reset. It fills with the first prompts."
	}
	return stateOK, ""
}

// scrapeHint says what to do about scrapes that fail. A reason may be followed
// by the answer's status.
func scrapeHint(scrapeError string) string {
	reason, status := scrapeError, 0
	_, _ = fmt.Sscanf(scrapeError, "%s %d", &reason, &status)
	switch reason {
	case "":
		return "No scrape has ended yet."
	case scrape.ReasonRefused:
		return "Nothing listens at its metrics' address: is the engine up?"
	case scrape.ReasonTimeout:
		return "Its metrics take longer than 2 s: is the engine overloaded, or stuck?"
	case scrape.ReasonRedirect:
		return "Its metrics redirect to another host or port: name that with metrics_url."
	case scrape.ReasonStatus:
		if status == 401 || status == 403 {
			return fmt.Sprintf("Its metrics answer %d: give the key with metrics_header.", status)
		}
		return fmt.Sprintf("Its metrics answer %d: are they elsewhere? See scrape and metrics_url.", status)
	case scrape.ReasonNotMetrics:
		return "What it has at the metrics' path is no metrics page. See scrape and metrics_url; SGLang needs --enable-metrics, llama.cpp --metrics."
	case scrape.ReasonUnknownEngine:
		return "Its metrics page has no queue of an engine that is known. See metrics_url."
	case scrape.ReasonTooLarge:
		return "Its metrics page is larger than 32 MiB."
	}
	return "Its metrics could not be fetched. Caddy's log says why."
}

// Advice begins when there is enough to judge by.
const (
	adviseAfter = 20  // decisions, or answers' thousands of tokens
	mispredict  = 0.7 // of the tokens predicted to be cached, at least so many should be
	tooLate     = 2.0 // first tokens may be so many times as late as predicted
	fewPrompts  = 0.5 // share of the decisions that may be left to the fallback policy
)

// advise says what an operator should look at.
func advise(r *stateReport) []string {
	advice := []string{}
	say := func(format string, args ...any) { advice = append(advice, fmt.Sprintf(format, args...)) }
	if len(r.Upstreams) == 0 {
		say("No upstream is known yet: no loaded configuration has one for this state, and no request came.")
	}
	poor := 0
	for i := range r.Upstreams {
		if u := &r.Upstreams[i]; !slices.Contains([]string{stateOK, stateCold, stateUnscraped, stateRemoved}, u.State) {
			poor++
		}
	}
	if poor > 0 {
		say("%d of %d upstreams need a look; their rows say why.", poor, len(r.Upstreams))
	}
	if n := r.Reasons["fallback"]; r.Decisions >= adviseAfter && float64(n) > fewPrompts*float64(r.Decisions) {
		say("%d of %d requests had no prompt to decide by and went to the fallback policy. caddy_llm_prefix_fallbacks_total says why.", n, r.Decisions)
	}
	c := &r.Cached
	switch {
	case r.Decisions >= adviseAfter && c.ToldPromptTokens == 0 && c.PromptTokens > 0:
		say("No answer tells its cached tokens, so predictions can't be checked. vLLM tells with --enable-prompt-tokens-details, in streams that ask for usage.")
	case c.ToldPredictedTokens > adviseAfter*1000 && float64(c.ToldCachedTokens) < mispredict*float64(c.ToldPredictedTokens):
		say("Fewer tokens are cached than predicted: %d of %d. Do others send to the same engines, or is more than one engine behind an address?", c.ToldCachedTokens, c.ToldPredictedTokens)
	}
	if f := &r.FirstToken; f.Count >= adviseAfter && *f.ActualSeconds > tooLate**f.PredictedSeconds && *f.ActualSeconds > 0.1 {
		say("First tokens come %.1f times as late as predicted. Are the engines' queues hidden, or do others send to them?", *f.ActualSeconds / *f.PredictedSeconds)
	}
	return advice
}
