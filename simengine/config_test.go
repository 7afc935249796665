package simengine

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDefaultsAreAnEngine(t *testing.T) {
	c := newEngine(t, Config{Cost: costH100x8B}).Config()
	if c.BlockSize != 16 || c.Blocks != 27_500 || c.MaxNumSeqs != 1024 || c.MaxNumBatchedTokens != 8192 || c.MaxModelLen != 131_072 {
		t.Errorf("defaults are %+v", c)
	}
	if got := (Config{Blocks: 101}).WithDefaults().MaxModelLen; got != 1600 {
		t.Errorf("model length over a pool of 1600 tokens = %d, want 1600", got)
	}
	if got := (Config{}).WithDefaults().Cost; got != costH100x8B {
		t.Errorf("default cost = %+v", got)
	}
}

func TestNewRefuses(t *testing.T) {
	for want, c := range map[string]Config{
		"block size":            {BlockSize: -1},
		"blocks":                {Blocks: 1, MaxModelLen: 10},
		"blocks is -1":          {Blocks: -1},
		"sequences":             {MaxNumSeqs: -1},
		"batched tokens":        {MaxNumBatchedTokens: -5},
		"below one block of 32": {BlockSize: 32, MaxNumBatchedTokens: 31},
		"model length":          {MaxModelLen: 1},
		"exceeds the 1584":      {Blocks: 100, MaxModelLen: 1585},
		"requests":              {MaxRequests: -1},
		"base of a step":        {Cost: Cost{PrefillToken: 1}},
		"request overhead":      {Cost: Cost{Base: 1, RequestOverhead: -1}},
		"a cost of NaN":         {Cost: Cost{Base: 1, PrefillToken: math.NaN()}},
		"a cost of -1":          {Cost: Cost{Base: 1, DecodeSeq: -1}},
		"a cost of +Inf":        {Cost: Cost{Base: 1, ContextToken: math.Inf(1)}},
		"a cost of 61":          {Cost: Cost{Base: 1, AttentionTerm: 61}},
		"block size is 5000":    {BlockSize: 5000},
		"long prefill":          {LongPrefillTokens: -1},
		"long prefill is 2000":  {LongPrefillTokens: 2000, MaxModelLen: 1999},
		"adapters in a batch":   {MaxLoRAs: -1},
		"watermark is 1":        {Watermark: 1},
		"watermark is -0.1":     {Watermark: -0.1},
		"watermark is NaN":      {Watermark: math.NaN()},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v, want an error about %q", c, err, want)
		}
	}
}

func TestBlocksForHoldsWhatItSays(t *testing.T) {
	for _, n := range []int{1, 15, 16, 17, 41_408} {
		c := Config{BlockSize: 16}
		c.Blocks = c.BlocksFor(n)
		if got := c.KVTokens(); got < n || got >= n+16 {
			t.Errorf("BlocksFor(%d) holds %d tokens", n, got)
		}
	}
}

func TestStepOfAbsurdCostIsADay(t *testing.T) {
	c := Cost{Base: time.Second, AttentionTerm: coefficientMax}
	if got := c.Step(Work{Attention: math.MaxFloat64}); got != stepMax {
		t.Errorf("step = %v, want %v", got, stepMax)
	}
}

// prefillRate is the tokens per second at which an idle engine computes a prompt.
func prefillRate(t *testing.T, p Preset, tokens int) float64 {
	t.Helper()
	e := newEngine(t, p.Config)
	submit(t, e, 0, prompt(1, 1, tokens, 1))
	o := drain(t, e)[1]
	return float64(tokens) / (o.Times.First - o.Times.Scheduled).Seconds()
}

// Presets must give the speeds that their coefficients were fitted to: prefill
// at 1024 and at 8192 tokens, and the step of one sequence at 1024, without the
// host's work. The bound of 20 % is the largest error of the fits. The last
// column is the decode step by another model, where there is one.
func TestPresetsReachTheSpeedsMeasured(t *testing.T) {
	for name, want := range map[string]struct{ at1k, at8k, decode, other float64 }{
		"llama3.1-8b-h100":    {47.5e3, 40.5e3, 5.9, 6.9},
		"llama3.1-8b-h200":    {50.8e3, 41.9e3, 4.5, 0},
		"llama3.1-8b-a100":    {16.3e3, 14.2e3, 11.5, 10.6},
		"llama3.1-8b-l40s":    {15.4e3, 12.5e3, 23.1, 23.5},
		"llama3-70b-tp4-h100": {12.8e3, 12.2e3, 14.0, 0},
		"llama3-70b-tp8-h100": {17.8e3, 19.3e3, 9.4, 0},
		"llama3-70b-tp4-a100": {5.2e3, 5.4e3, 26.4, 0},
	} {
		p, ok := PresetByName(name)
		if !ok {
			t.Errorf("PresetByName(%q) found none", name)
			continue
		}
		host := rows[slices.IndexFunc(rows, func(r row) bool { return r.name == name })].host
		if host < 0.4 || host > 0.9 {
			t.Errorf("%s: the host's work is %v ms, want 0.4 to 0.9", name, host)
		}
		decode := p.Config.Cost.Step(Work{DecodeSeqs: 1, ContextTokens: 1024}).Seconds()*1e3 - host
		for _, c := range []struct {
			what      string
			got, want float64
		}{
			{"prefill of 1024, tokens/s", prefillRate(t, p, 1024), want.at1k},
			{"prefill of 8192, tokens/s", prefillRate(t, p, 8192), want.at8k},
			{"decode step, ms", decode, want.decode},
			{"decode step by another model, ms", decode, want.other},
		} {
			if c.want > 0 && (c.got < 0.8*c.want || c.got > 1.2*c.want) {
				t.Errorf("%s: %s = %.1f, want %.1f within 20 %%", name, c.what, c.got, c.want)
			}
		}
	}
}

// Pools in tokens and bounds of a step, as published beside the coefficients.
func TestPresetsHaveThePoolsOfTheirGPUs(t *testing.T) {
	for name, want := range map[string][3]int{
		"llama3.1-8b-h100":       {440_000, 8192, 1024},
		"llama3.1-8b-h200":       {910_000, 8192, 1024},
		"llama3.1-8b-a100":       {450_000, 2048, 256},
		"llama3.1-8b-l40s":       {190_000, 2048, 256},
		"llama3-70b-tp4-h100":    {485_000, 8192, 1024},
		"llama3-70b-tp8-h100":    {1_400_000, 8192, 1024},
		"llama3-70b-tp4-a100":    {485_000, 2048, 256},
		"llama3.1-8b-rtx4090":    {41_408, 2048, 256},
		"llama3.1-8b-rtxpro6000": {578_000, 2048, 128}, // (0.92·95 GiB - 15 GiB - 2 GiB) / 128 KiB
	} {
		p, ok := PresetByName(name)
		if !ok {
			t.Errorf("PresetByName(%q) found none", name)
			continue
		}
		c := p.Config
		if tokens := c.Blocks * c.BlockSize; tokens < want[0]*98/100 || tokens > want[0]*102/100 {
			t.Errorf("%s: a pool of %d tokens, want %d within 2 %%", name, tokens, want[0])
		}
		if c.MaxNumBatchedTokens != want[1] || c.MaxNumSeqs != want[2] {
			t.Errorf("%s: %d tokens and %d sequences a step, want %d and %d", name, c.MaxNumBatchedTokens, c.MaxNumSeqs, want[1], want[2])
		}
	}
}

func TestPresetsAreEngines(t *testing.T) {
	all := Presets()
	if len(all) != 9 {
		t.Errorf("%d presets, want 9", len(all))
	}
	for _, p := range all {
		if _, err := New(p.Config); err != nil || p.Source == "" {
			t.Errorf("%s: %v, source %q", p.Name, err, p.Source)
		}
	}
	if !slices.ContainsFunc(all, func(p Preset) bool { return p.Config.KVTokens() == 41_392 }) {
		t.Error("no preset has the pool of 2588 blocks, one of them the placeholder")
	}
	all[0].Name = "changed"
	if Presets()[0].Name == "changed" {
		t.Error("Presets() hands out its own list")
	}
	if _, ok := PresetByName("gpt-9"); ok {
		t.Error("PresetByName found what isn't there")
	}
}
