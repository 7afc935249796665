package caddyllm

import "go.uber.org/zap"

// Where a fault of ours was caught: the places of
// caddy_llm_prefix_panics_total.
const (
	inClassify = "classify" // looking at a request; it goes to the fallback policy
	inDecision = "decision" // deciding; it goes to the fallback policy
	inPublish  = "publish"  // telling log and placeholders of a decision
	inObserve  = "observe"  // watching an answer pass
	inUsage    = "usage"    // reading what an answer told of its tokens
	inScrape   = "scrape"   // taking in what a scrape told, or beginning to scrape
)

var places = []string{inClassify, inDecision, inPublish, inObserve, inUsage, inScrape}

// catch, deferred, keeps a fault of ours from costing the client an answer that
// plain Caddy would have given, or the process its life. The value of a panic
// may hold what the client sent, so it is not logged; the stack has no data in
// it.
func (p *LLMPrefix) catch(place string) {
	if recover() != nil {
		caught(p.logger, place)
	}
}

func caught(logger *zap.Logger, place string) {
	metrics.panics[place].Add(1)
	logger.Error("fault of llm_prefix; the request goes on without it", zap.String("place", place), zap.StackSkip("stack", 2))
}
