package vllmmetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Buckets of vLLM's histograms, in seconds.
var (
	firstTokenBuckets = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	tokenBuckets      = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestBuckets    = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	choiceBuckets     = []float64{1, 2, 5, 10, 20}
	preemptionBuckets = []float64{1, 2, 3, 4, 5, 10, 20}
)

// lengthBuckets are 1, 2, 5, 10, 20, 50 and so on up to top.
func lengthBuckets(top int) []float64 {
	var buckets []float64
	for scale := 1; scale <= top; scale *= 10 {
		for _, mantissa := range []int{1, 2, 5} {
			if b := mantissa * scale; b <= top {
				buckets = append(buckets, float64(b))
			}
		}
	}
	return buckets
}

// histograms are those of one engine that grow by observation. A nil one is not
// in the profile.
type histograms struct {
	all []prometheus.Histogram

	firstToken, perOutputToken                               prometheus.Histogram
	betweenTokens, betweenTokensOld                          prometheus.Histogram
	endToEnd, queue, inference, prefill, decode              prometheus.Histogram
	prompt, generated, mostGenerated, computed, limit, count prometheus.Histogram
	preemptions                                              prometheus.Histogram

	// Counted by the engine, step by step; here for its name and labels.
	iteration *prometheus.Desc
}

const iterationName = "vllm:iteration_tokens_total"

func newHistograms(o Options, labels prometheus.Labels) *histograms {
	h := &histograms{
		iteration: prometheus.NewDesc(iterationName, "Prompt and generated tokens of a step.", nil, labels),
	}
	add := func(when span, name, help string, buckets []float64) prometheus.Histogram {
		if !when.has(o.Profile) {
			return nil
		}
		x := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, ConstLabels: labels, Buckets: buckets})
		h.all = append(h.all, x)
		return x
	}
	h.firstToken = add(always, "vllm:time_to_first_token_seconds", "From arrival to the first token.", firstTokenBuckets)
	h.betweenTokens = add(since(V011), "vllm:inter_token_latency_seconds", "From one token of a request to the next.", tokenBuckets)
	h.betweenTokensOld = add(until(V011), "vllm:time_per_output_token_seconds", "From one token of a request to the next; the former name.", tokenBuckets)
	h.perOutputToken = add(since(V011), "vllm:request_time_per_output_token_seconds", "Mean time between the tokens of a request.", tokenBuckets)
	h.endToEnd = add(always, "vllm:e2e_request_latency_seconds", "From arrival to the last token.", requestBuckets)
	h.queue = add(always, "vllm:request_queue_time_seconds", "In the queue.", requestBuckets)
	h.inference = add(always, "vllm:request_inference_time_seconds", "From the first batch to the last token.", requestBuckets)
	h.prefill = add(always, "vllm:request_prefill_time_seconds", "From the first batch to the first token.", requestBuckets)
	h.decode = add(always, "vllm:request_decode_time_seconds", "From the first token to the last.", requestBuckets)

	lengths := lengthBuckets(o.MaxModelLen)
	if o.Profile == Rust {
		lengths = append(lengthBuckets(rustLengthMax), rustLengthMax)
	}
	h.prompt = add(always, "vllm:request_prompt_tokens", "Length of prompts.", lengths)
	h.generated = add(always, "vllm:request_generation_tokens", "Length of outputs.", lengths)
	h.mostGenerated = add(always, "vllm:request_max_num_generation_tokens", "Length of the longest output of a request.", lengths)
	h.limit = add(always, "vllm:request_params_max_tokens", "Longest output asked for.", lengths)
	h.count = add(always, "vllm:request_params_n", "Number of outputs asked for.", choiceBuckets)
	h.computed = add(since(V019), "vllm:request_prefill_kv_computed_tokens", "Prompt tokens that had to be computed.", lengths)
	h.preemptions = add(since(Main).python(), "vllm:request_num_preemptions", "How often a request was sent back to the queue.", preemptionBuckets)
	return h
}

// rustLengthMax ends the length buckets of the Rust front end, which doesn't ask
// how long a context is (rust/src/metrics/src/request.rs).
const rustLengthMax = 131_072

func (h *histograms) collectors() []prometheus.Collector {
	list := make([]prometheus.Collector, len(h.all))
	for i, x := range h.all {
		list[i] = x
	}
	return list
}

// Observer returns what takes the outputs of each step of an engine: times to
// first token and between tokens, and, of requests that ended, latencies and
// lengths. It fits live.Options.Observe. Aborted requests leave no trace, as in
// vLLM. The engine counts from 0 and must be one of the Exporter's.
func (e *Exporter) Observer(engine int) func([]simengine.Output) {
	return func(outputs []simengine.Output) {
		h := e.page.Load().histograms[engine]
		for i := range outputs {
			o := &outputs[i]
			h.token(o)
			if o.Finished {
				h.finished(o)
			}
		}
	}
}

// token takes what an output says of its tokens. Several in one output share the
// time since the one before them.
func (h *histograms) token(o *simengine.Output) {
	later := o.Tokens
	if o.First {
		observe(h.firstToken, o.Times.First-o.Times.Arrived)
		later--
	}
	if later < 1 {
		return
	}
	since := o.Times.Previous
	if o.First {
		since = o.Times.First
	}
	each := (o.Times.At - since) / time.Duration(later)
	for range later {
		observe(h.betweenTokens, each)
		observe(h.betweenTokensOld, each)
	}
}

// finished takes the end of a sequence. vLLM observes nothing of one that was
// aborted.
func (h *histograms) finished(o *simengine.Output) {
	aborted := o.Reason == simengine.ReasonAbort
	if !aborted {
		h.request(o)
	}
	asked, ok := o.Source.(Asked)
	if !ok {
		return
	}
	p := asked.Asked()
	tokens := 0
	if !aborted {
		tokens = o.GeneratedTokens
		h.limit.Observe(float64(p.MaxTokens))
	}
	if most, last := p.end(tokens); last && !aborted {
		h.count.Observe(float64(p.N))
		h.mostGenerated.Observe(float64(most))
	}
}

func (h *histograms) request(o *simengine.Output) {
	t := o.Times
	observe(h.endToEnd, t.At-t.Arrived)
	observe(h.queue, t.Scheduled-t.Queued)
	observe(h.inference, t.At-t.Scheduled)
	observe(h.prefill, t.First-t.Scheduled)
	observe(h.decode, t.At-t.First)
	// Of a single token it is 0, as vLLM has it.
	observe(h.perOutputToken, (t.At-t.First)/time.Duration(max(1, o.GeneratedTokens-1)))
	h.prompt.Observe(float64(o.PromptTokens))
	h.generated.Observe(float64(o.GeneratedTokens))
	if h.computed != nil {
		h.computed.Observe(float64(o.PromptTokens - o.CachedTokens))
	}
	if h.preemptions != nil {
		h.preemptions.Observe(float64(o.Preemptions))
	}
}

// observe does nothing to a histogram that the profile lacks.
func observe(h prometheus.Histogram, d time.Duration) {
	if h != nil {
		h.Observe(d.Seconds())
	}
}

// iterations is the engine's histogram as a metric.
func iterations(desc *prometheus.Desc, counted simengine.Histogram, start time.Time) prometheus.Metric {
	buckets := make(map[float64]uint64, len(simengine.IterationBounds))
	var n uint64
	for i, bound := range simengine.IterationBounds {
		n += counted.Counts[i]
		buckets[bound] = n
	}
	n += counted.Counts[len(simengine.IterationBounds)]
	return prometheus.MustNewConstHistogramWithCreatedTimestamp(desc, n, counted.Sum, buckets, start)
}
