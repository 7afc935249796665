package simengine

import (
	"math"
	"slices"
	"time"
)

// Preset is a model on hardware that engines are known to run it on.
type Preset struct {
	Name   string
	Source string // where its coefficients come from
	Config Config
}

// Where coefficients come from.
const (
	// Sums of measured vLLM kernels (GEMM, attention and all-reduce, in BF16, with
	// CUDA graphs; element-wise work at 80 % of the memory's bandwidth), to which
	// the model was fitted with a mean error of 1 to 5 % for decoding (14 % at
	// worst) and 2 to 7 % for prefill (19 % at worst). They hold no work of the
	// host.
	sourceKernels = "vLLM kernel times in NVIDIA aiconfigurator (H100, H200: vLLM 0.24.0; A100, L40S: 0.14.0)"

	// The same, and decode steps of a published model that was fitted to real
	// vLLM servers, which come within a fifth of them.
	sourceKernelsChecked = sourceKernels + ", checked against BLIS, a model fitted to vLLM on H100"

	// Whole runs of a real vLLM, the host's work included.
	sourceRuns = "fit to runs of vLLM 0.19"
)

// overhead is the low end of the 5 to 15 ms that a request was seen to spend
// outside of steps.
const overhead = 5 * time.Millisecond

// row is a preset in the units in which coefficients are published.
type row struct {
	name, source string

	base    float64 // ms a step; of the kernels where the source is that
	host    float64 // ms a step that base lacks: inferred, 0.4 to 0.9
	prefill float64 // us a token
	decode  float64 // us a sequence
	context float64 // ns a token
	pairs   float64 // ns a pair of tokens: AttentionTerm

	// blocks are those of 16 tokens that a pool has at vLLM's default share of GPU
	// memory, 0.92. That of the RTX 4090 was recorded, at 0.9; the others are
	// calculated from (0.92·GPU memory - weights - 1.1 to 2 GiB) at 128 KiB a token
	// for 8B and 320 KiB for 70B, over all GPUs.
	blocks int

	// budget and seqs are what vLLM picks for the GPU: 8192 tokens and 1024
	// sequences from 70 GiB on, except on the A100; else 2048 and 256. The RTX PRO
	// 6000 is as it was run.
	budget, seqs int
}

var rows = []row{
	{"llama3.1-8b-h100", sourceKernelsChecked, 5.9, 0.4, 16, 12.4, 41.5, 1.56, 27_500, 8192, 1024},
	{"llama3.1-8b-h200", sourceKernels, 4.5, 0.4, 16.5, 11.3, 29.6, 1.45, 57_000, 8192, 1024},
	{"llama3.1-8b-a100", sourceKernelsChecked, 11.1, 0.5, 54, 31, 81, 3.5, 28_000, 2048, 256},
	// The L40S needs 18 ms for the shortest prompt, which the model lacks.
	{"llama3.1-8b-l40s", sourceKernelsChecked, 22.1, 0.7, 43, 34, 189, 6.8, 12_000, 2048, 256},
	{"llama3-70b-tp4-h100", sourceKernels, 14.4, 0.8, 66, 48, 27, 2.2, 30_000, 8192, 1024},
	{"llama3-70b-tp8-h100", sourceKernels, 9.3, 0.7, 48, 35, 13.7, 0.4, 88_000, 8192, 1024},
	{"llama3-70b-tp4-a100", sourceKernels, 26.6, 0.9, 174, 142, 50, 2.3, 30_000, 2048, 256},
	{"llama3.1-8b-rtx4090", sourceRuns, 18.6, 0, 100, 19, 122, 2.0, 2_588, 2048, 256},
	{"llama3.1-8b-rtxpro6000", sourceRuns, 15.8, 0, 36, 13.5, 77.5, 1.04, 36_000, 2048, 128},
}

func (r row) cost() Cost {
	return Cost{
		Base:            time.Duration(math.Round((r.base + r.host) * float64(time.Millisecond))),
		PrefillToken:    r.prefill * 1e-6,
		DecodeSeq:       r.decode * 1e-6,
		ContextToken:    r.context * 1e-9,
		AttentionTerm:   r.pairs * 1e-9,
		RequestOverhead: overhead,
	}
}

func (r row) preset() Preset {
	c := Config{
		Blocks: r.blocks, MaxNumBatchedTokens: r.budget, MaxNumSeqs: r.seqs,
		MaxModelLen: modelLen(r.blocks), Cost: r.cost(),
	}
	return Preset{Name: r.name, Source: r.source, Config: c.WithDefaults()}
}

// modelLen is the model's whole context where the pool holds it, else what the
// run on the RTX 4090 was started with.
func modelLen(blocks int) int {
	if (blocks-1)*DefaultBlockSize < DefaultMaxModelLen {
		return 32_768
	}
	return DefaultMaxModelLen
}

// costH100x8B is what engines have that are told no cost.
var costH100x8B = rows[0].cost()

var presets = func() []Preset {
	var list []Preset
	for _, r := range rows {
		list = append(list, r.preset())
	}
	return list
}()

// Presets returns the known presets, all in BF16 with blocks of 16 tokens and
// without asynchronous scheduling.
func Presets() []Preset { return slices.Clone(presets) }

// PresetByName finds a preset.
func PresetByName(name string) (Preset, bool) {
	i := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}, false
	}
	return presets[i], true
}
