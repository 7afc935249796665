package simengine

import (
	"slices"
	"time"
)

// Preset is a model on hardware that engines are known to run it on.
type Preset struct {
	Name   string
	Source string // where its coefficients come from
	Config Config
}

// Sources of coefficients. Kernel times are sums of measured vLLM kernels
// (GEMM, attention, all-reduce) fitted with a mean error of 1 to 7 %, plus 0.4
// to 0.8 ms of host work in Base; the others are fits to whole runs.
const (
	sourceKernels = "vLLM kernel times in NVIDIA aiconfigurator (H100, H200: vLLM 0.24.0; A100, L40S: 0.14.0)"
	sourceRuns    = "fit to runs of vLLM 0.19"
)

// overhead is the low end of the 5 to 15 ms that a request was seen to spend
// outside of steps.
const overhead = 5 * time.Millisecond

// cost takes the units in which coefficients are published: ms, µs per token,
// µs per sequence, ns per token of context, ns per token·token.
func cost(base, prefill, decode, context, attention float64) Cost {
	return Cost{
		Base:            time.Duration(base * float64(time.Millisecond)),
		PrefillToken:    prefill * 1e-6,
		DecodeSeq:       decode * 1e-6,
		ContextToken:    context * 1e-9,
		AttentionTerm:   attention * 1e-9,
		RequestOverhead: overhead,
	}
}

var costH100x8B = cost(6.3, 16, 12.4, 41.5, 1.56)

// size of a pool at vLLM's default share of GPU memory (0.92), and the step
// bounds that vLLM picks for the GPU: 8192 tokens and 1024 sequences from 70
// GiB on, except on the A100, which has 2048 and 256 as smaller ones.
func preset(name, source string, blocks, budget, seqs int, c Cost) Preset {
	cfg := Config{Blocks: blocks, MaxNumBatchedTokens: budget, MaxNumSeqs: seqs, MaxModelLen: modelLen(blocks), Cost: c}
	return Preset{Name: name, Source: source, Config: cfg.WithDefaults()}
}

// modelLen is the model's whole context where the pool holds it, else what the
// run on the RTX 4090 was started with.
func modelLen(blocks int) int {
	if (blocks-1)*DefaultBlockSize < DefaultMaxModelLen {
		return 32_768
	}
	return DefaultMaxModelLen
}

// Presets returns the known presets, all in BF16 with blocks of 16 tokens. The
// pool of llama3.1-8b-rtx4090 was measured; the others are calculated from GPU
// memory, that of llama3.1-8b-rtxpro6000 as (0.92·95 GiB - 15 GiB - 2 GiB) at
// 128 KiB per token.
func Presets() []Preset { return slices.Clone(presets) }

var presets = []Preset{
	preset("llama3.1-8b-h100", sourceKernels, 27_500, 8192, 1024, costH100x8B),
	preset("llama3.1-8b-h200", sourceKernels, 57_000, 8192, 1024, cost(4.9, 16.5, 11.3, 29.6, 1.45)),
	preset("llama3.1-8b-a100", sourceKernels, 28_000, 2048, 256, cost(11.6, 54, 31, 81, 3.5)),
	preset("llama3.1-8b-l40s", sourceKernels, 12_000, 2048, 256, cost(22.8, 43, 34, 189, 6.8)),
	preset("llama3-70b-tp4-h100", sourceKernels, 30_000, 8192, 1024, cost(15.2, 66, 48, 27, 2.2)),
	preset("llama3-70b-tp8-h100", sourceKernels, 88_000, 8192, 1024, cost(10, 48, 35, 13.7, 0.4)),
	preset("llama3-70b-tp4-a100", sourceKernels, 30_000, 2048, 256, cost(27.5, 174, 142, 50, 2.3)),
	preset("llama3.1-8b-rtx4090", sourceRuns, 2_588, 2048, 256, cost(18.6, 100, 19, 122, 2.0)),
	preset("llama3.1-8b-rtxpro6000", sourceRuns, 36_000, 2048, 128, cost(15.8, 36, 13.5, 77.5, 1.04)),
}

// PresetByName finds a preset.
func PresetByName(name string) (Preset, bool) {
	i := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}, false
	}
	return presets[i], true
}
