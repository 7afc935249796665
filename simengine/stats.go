package simengine

// IterationBounds are the upper bounds, in tokens, of the buckets of
// Stats.IterationTokens; vLLM's own for vllm:iteration_tokens_total.
var IterationBounds = [13]float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}

// Stats is what an engine shows at the end of a step. Gauges stand for that
// moment; the others count from the engine's start. Tokens, where not said
// otherwise.
type Stats struct {
	Running  int     // requests that hold blocks, those in prefill included
	Waiting  int     // requests that hold none, preempted ones included
	Deferred int     // of these, those that others passed by for want of an adapter's slot
	KVUsage  float64 // share of blocks that are referenced, 0 to 1

	// Adapters of those requests, by name, with commas between.
	RunningAdapters, WaitingAdapters string

	PrefixQueries uint64 // looked up in the prefix cache at first admissions
	PrefixHits    uint64 // found there

	PromptTokens       uint64 // of requests whose first token appeared, cached ones included
	PromptTokensCached uint64
	GenerationTokens   uint64

	Preemptions    uint64
	FinishedStop   uint64 // requests
	FinishedLength uint64 // requests
	Aborted        uint64 // requests; vLLM doesn't count those that a client left
	Steps          uint64 // steps that had work
	Evictions      uint64 // blocks whose content was dropped for another's

	// IterationTokens are prompt and generated tokens that a step brought forth:
	// those of a prompt count when its first token appears. IterationComputed
	// leaves out those that were cached.
	IterationTokens, IterationComputed Histogram
}

// Histogram counts observations by bucket of IterationBounds; the last count is
// for what exceeds them all. Counts are not cumulative.
type Histogram struct {
	Counts [len(IterationBounds) + 1]uint64
	Sum    float64
}

// observe counts n observations of x tokens.
func (h *Histogram) observe(x, n int) {
	h.Sum += float64(x) * float64(n)
	for i, bound := range IterationBounds {
		if float64(x) <= bound {
			h.Counts[i] += uint64(n)
			return
		}
	}
	h.Counts[len(IterationBounds)] += uint64(n)
}
