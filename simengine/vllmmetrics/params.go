package vllmmetrics

import "sync"

// Params is what a client asked for with a prompt. The sequences of its choices
// share one.
type Params struct {
	N         int // choices
	MaxTokens int // bound of a reply

	mu    sync.Mutex
	ended int
	most  int // tokens of the longest reply
}

// Asked is what simengine.Request.Source must be for the histograms of what
// clients ask for: vllm:request_params_n and request_max_num_generation_tokens
// count prompts, vllm:request_params_max_tokens sequences, all as they end in the
// engine, whether or not the client is still there.
type Asked interface{ Asked() *Params }

// Asked makes Params an Asked.
func (p *Params) Asked() *Params { return p }

// end takes the end of a sequence with so many tokens, and tells whether it was
// the last of the prompt's.
func (p *Params) end(tokens int) (most int, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	p.most = max(p.most, tokens)
	return p.most, p.ended == p.N
}
