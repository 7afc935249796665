package simengine

import (
	"fmt"
	"math"
	"time"
)

// Defaults and bounds of Config.
const (
	DefaultBlockSize           = 16
	DefaultBlocks              = 27_500 // Llama-3.1-8B on one H100, as the preset
	DefaultMaxNumSeqs          = 1024   // vLLM's on GPUs of 70 GiB and more
	DefaultMaxNumBatchedTokens = 8192   // likewise
	DefaultMaxModelLen         = 131_072
	DefaultMaxRequests         = 1 << 20

	MaxBlockSize = 4096
	MaxBlocks    = 1 << 28
	MaxTokens    = 1 << 30 // of a step's budget and of a context
)

// Config is what an engine is told at start. WithDefaults fills zero fields;
// New does so itself.
type Config struct {
	// BlockSize is the number of tokens of a KV block, 1 to 4096; default 16.
	BlockSize int

	// Blocks is the size of the KV pool in blocks, with block 0, which vLLM
	// keeps as a placeholder: capacity is (Blocks-1)·BlockSize tokens. At least
	// 2; default 27500.
	Blocks int

	// MaxNumSeqs bounds the requests in a batch; default 1024.
	MaxNumSeqs int

	// MaxNumBatchedTokens is the budget of a step: decodes take one token each,
	// prefill chunks take what is left. At least BlockSize; default 8192.
	MaxNumBatchedTokens int

	// MaxModelLen bounds prompt plus output of a request, in tokens. Default
	// 131072, or the pool's capacity where that is less. It may not exceed the
	// capacity, because such a request could never end.
	MaxModelLen int

	// MaxRequests bounds the requests held at once, waiting ones included.
	// vLLM has no such bound; a simulator must not eat the machine. Default
	// 1048576.
	MaxRequests int

	// PriorityScheduling orders waiting requests by Request.Priority, lower
	// first, then by arrival, and preempts the highest. Without it requests are
	// served in order of arrival and a priority is an error.
	PriorityScheduling bool

	// AsyncScheduling composes each step while the one before it is computed, as
	// vLLM does by default since 0.14. It hides the scheduler's work and costs a
	// step of lag: what arrives, is cancelled or is freed during a step counts
	// for the step after the next.
	AsyncScheduling bool

	// AdmitByChunk lets a request in when its first chunk fits. Without it all of
	// the prompt must, as in vLLM since 0.19 (scheduler_reserve_full_isl).
	AdmitByChunk bool

	// LongPrefillTokens bounds a chunk of prefill, so that a long prompt leaves
	// room in a step for others: vLLM's long_prefill_token_threshold. A request
	// that has the engine to itself may use the whole budget, unless
	// LongPrefillAlone, as in vLLM up to 0.19 at least. LongPrefillAdaptive raises
	// the bound to an even share of the budget. 0, the default, is no bound.
	LongPrefillTokens   int
	LongPrefillAlone    bool
	LongPrefillAdaptive bool

	// Watermark is the share of all blocks that stays free when a waiting request
	// is let in beside others, at least 0, the default, and less than 1. vLLM has
	// it since 0.24.
	Watermark float64

	// MaxLoRAs bounds the adapters in a batch. A request for another one is passed
	// over by those behind it until an adapter's last request has left. 0, the
	// default, is no bound; vLLM's is 1.
	MaxLoRAs int

	// DisablePrefixCaching makes every prompt a cold one.
	DisablePrefixCaching bool

	// KVEvents makes the engine note what its prefix cache stores and drops; see
	// Engine.KVEvents. Off by default.
	KVEvents bool

	// Cost is the time that steps take. The zero value is the cost of
	// Llama-3.1-8B on one H100.
	Cost Cost
}

// Cost is a model of a step's time, linear but for the last term:
//
//	step = Base
//	     + PrefillToken  · tokens of prefill chunks
//	     + DecodeSeq     · sequences that decode
//	     + ContextToken  · sum of the contexts of those that decode
//	     + AttentionTerm · sum over chunks of chunk·(context before + chunk/2)
//	     + Experts       · share of the experts that one of the tokens needs
type Cost struct {
	Base          time.Duration
	PrefillToken  float64 // seconds per token
	DecodeSeq     float64 // seconds per sequence
	ContextToken  float64 // seconds per token of context
	AttentionTerm float64 // seconds per token·token

	// PrefillFree is how many tokens of prefill a step computes in the shadow of
	// the weights, which it reads in any case: PrefillToken is paid for those
	// beyond it. 0 is right where kernels hide nothing, as on an RTX 4090;
	// Base/PrefillToken would hide all they could. Default 0.
	PrefillFree int

	// Experts is the time to read the weights of all experts of a mixture, of
	// which each token needs the share ExpertShare (8 of 128: 0.0625). A step of n
	// tokens reads those that one of them needs: taking them to be picked at
	// random, 1 - (1-ExpertShare)^n. Both are 0 by default, as of a dense model.
	Experts     time.Duration
	ExpertShare float64

	// FirstStep is added to the first step of an engine's life, before it counts
	// as begun: what is compiled, loaded or captured at first use. 385 ms were
	// seen with vLLM 0.19 on an RTX 4090; the presets have none, as of engines
	// that served before.
	FirstStep time.Duration

	// RequestOverhead is spent on each request before the scheduler may see it:
	// HTTP, templating, tokenisation and the way between the processes.
	// Requests don't wait for each other in it.
	RequestOverhead time.Duration
}

// WithDefaults returns c with zero fields filled in. It doesn't repair fields
// that are out of range.
func (c Config) WithDefaults() Config {
	set := func(p *int, n int) {
		if *p == 0 {
			*p = n
		}
	}
	set(&c.BlockSize, DefaultBlockSize)
	set(&c.Blocks, DefaultBlocks)
	set(&c.MaxNumSeqs, DefaultMaxNumSeqs)
	set(&c.MaxNumBatchedTokens, DefaultMaxNumBatchedTokens)
	set(&c.MaxModelLen, min(DefaultMaxModelLen, c.KVTokens()))
	set(&c.MaxRequests, DefaultMaxRequests)
	if c.Cost == (Cost{}) {
		c.Cost = costH100x8B
	}
	return c
}

// Validate tells what is out of range. It expects defaults to be filled in.
func (c Config) Validate() error {
	for _, f := range []struct {
		name           string
		value, lo, top int
	}{
		{"block size", c.BlockSize, 1, MaxBlockSize},
		{"blocks", c.Blocks, 2, MaxBlocks},
		{"sequences in a batch", c.MaxNumSeqs, 1, MaxTokens},
		{"batched tokens", c.MaxNumBatchedTokens, 1, MaxTokens},
		{"model length", c.MaxModelLen, 2, MaxTokens},
		{"requests", c.MaxRequests, 1, MaxTokens},
		{"tokens of a long prefill", c.LongPrefillTokens, 0, c.MaxModelLen},
		{"adapters in a batch", c.MaxLoRAs, 0, MaxTokens},
	} {
		if f.value < f.lo || f.value > f.top {
			return fmt.Errorf("checking engine: %s is %d, want %d to %d", f.name, f.value, f.lo, f.top)
		}
	}
	if !(c.Watermark >= 0 && c.Watermark < 1) {
		return fmt.Errorf("checking engine: watermark is %v, want at least 0 and less than 1", c.Watermark)
	}
	if c.MaxNumBatchedTokens < c.BlockSize {
		return fmt.Errorf("checking engine: %d batched tokens are below one block of %d", c.MaxNumBatchedTokens, c.BlockSize)
	}
	if c.MaxModelLen > c.KVTokens() {
		return fmt.Errorf("checking engine: model length %d exceeds the %d tokens of the KV pool", c.MaxModelLen, c.KVTokens())
	}
	return c.Cost.validate()
}

// KVTokens is the number of tokens the KV pool holds.
func (c Config) KVTokens() int { return (c.Blocks - 1) * c.BlockSize }

// BlocksFor is the number of blocks of a pool that holds n tokens.
func (c Config) BlocksFor(n int) int {
	size := max(c.BlockSize, 1)
	return n/size + min(n%size, 1) + 1
}

// coefficientMax keeps a step's time finite: with it, budgets and contexts at
// their bounds, a step is still far below what a time.Duration holds.
const coefficientMax = 60.0

func (c Cost) validate() error {
	if c.Base <= 0 || c.Base > time.Hour {
		return fmt.Errorf("checking engine: base of a step is %v, want more than 0 and at most 1h", c.Base)
	}
	if c.FirstStep < 0 || c.FirstStep > time.Hour {
		return fmt.Errorf("checking engine: first step takes %v more, want 0 to 1h", c.FirstStep)
	}
	if c.Experts < 0 || c.Experts > time.Hour {
		return fmt.Errorf("checking engine: reading all experts takes %v, want 0 to 1h", c.Experts)
	}
	if !(c.ExpertShare >= 0 && c.ExpertShare <= 1) {
		return fmt.Errorf("checking engine: a token needs the share %v of the experts, want 0 to 1", c.ExpertShare)
	}
	if c.PrefillFree < 0 || c.PrefillFree > MaxTokens {
		return fmt.Errorf("checking engine: %d tokens of prefill are free, want 0 to %d", c.PrefillFree, MaxTokens)
	}
	if c.RequestOverhead < 0 || c.RequestOverhead > time.Hour {
		return fmt.Errorf("checking engine: request overhead is %v, want 0 to 1h", c.RequestOverhead)
	}
	for _, x := range []float64{c.PrefillToken, c.DecodeSeq, c.ContextToken, c.AttentionTerm} {
		if math.IsNaN(x) || x < 0 || x > coefficientMax {
			return fmt.Errorf("checking engine: a cost of %v s, want 0 to %v", x, coefficientMax)
		}
	}
	return nil
}

// Work is what a step works on, as Cost sees it.
type Work struct {
	PrefillTokens int
	DecodeSeqs    int
	ContextTokens int     // of those that decode
	Attention     float64 // token·token, of prefill chunks
}
