package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/fit"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"
)

// engine is the preset with what the flags change.
func (o *options) engine(f *pflag.FlagSet) (simengine.Config, error) {
	var none simengine.Config
	preset, err := fit.Preset(o.preset)
	if err != nil {
		return none, fmt.Errorf("checking --preset: %w", err)
	}
	if o.model == "" {
		// Names of presets are model, size, and what it runs on.
		o.model = preset.Name
		if parts := strings.SplitN(preset.Name, "-", 3); len(parts) == 3 {
			o.model = parts[0] + "-" + parts[1]
		}
	}
	fitted := strings.HasSuffix(o.preset, ".json")
	o.preset = preset.Name
	if !slices.Contains(profileNames(), o.profile) {
		return none, fmt.Errorf("checking --profile: unknown %q, want one of %s", o.profile, strings.Join(profileNames(), ", "))
	}
	if o.count < 1 || o.count > maxServers {
		return none, fmt.Errorf("checking --count: %d, want 1 to %d", o.count, maxServers)
	}
	if o.engines < 1 || o.engines > live.RanksMax {
		return none, fmt.Errorf("checking --data-parallel-size: %d, want 1 to %d", o.engines, live.RanksMax)
	}
	if o.maxQueued < 0 {
		return none, fmt.Errorf("checking --max-num-queued-reqs: %d, want 0 or more", o.maxQueued)
	}
	if o.slots < 1 {
		return none, fmt.Errorf("checking --max-loras: %d, want 1 or more", o.slots)
	}
	if !(o.speed > 0 && o.speed <= maxSpeed) {
		return none, fmt.Errorf("checking --speed: %v, want more than 0 and at most %v", o.speed, maxSpeed)
	}
	if o.keepAlive <= 0 {
		return none, fmt.Errorf("checking --keep-alive: %v, want more than 0", o.keepAlive)
	}
	if err := o.readEvents(); err != nil {
		return none, err
	}
	c := preset.Config
	c.KVEvents = o.events.Publishes()
	c.MaxLoRAs = o.maxLoRAs()
	if err := o.asVersion(f, fitted, &c); err != nil {
		return none, err
	}
	switch o.policy {
	case "fcfs":
	case "priority":
		c.PriorityScheduling = true
	default:
		return none, fmt.Errorf("checking --scheduling-policy: unknown %q, want fcfs or priority", o.policy)
	}
	for name, change := range map[string]func(){
		"max-num-seqs":                          func() { c.MaxNumSeqs = o.maxSeqs },
		"max-num-batched-tokens":                func() { c.MaxNumBatchedTokens = o.maxBatched },
		"no-enable-prefix-caching":              func() { c.DisablePrefixCaching = o.noCaching },
		"async-scheduling":                      func() { c.AsyncScheduling = o.async },
		"long-prefill-token-threshold":          func() { c.LongPrefillTokens = o.longPrefill },
		"long-prefill-token-threshold-adaptive": func() { c.LongPrefillAdaptive = o.longPrefillAdaptive },
		"watermark":                             func() { c.Watermark = o.watermark },
		"step-base":                             func() { c.Cost.Base = o.stepBase },
		"request-overhead":                      func() { c.Cost.RequestOverhead = o.overhead },
		"prefill-us-per-token":                  func() { c.Cost.PrefillToken = o.prefill * 1e-6 },
		"decode-us-per-seq":                     func() { c.Cost.DecodeSeq = o.decode * 1e-6 },
		"context-ns-per-token":                  func() { c.Cost.ContextToken = o.contextNS * 1e-9 },
		"attention-ns":                          func() { c.Cost.AttentionTerm = o.attention * 1e-9 },
	} {
		if f.Changed(name) {
			change()
		}
	}
	if err := o.size(f, &c); err != nil {
		return none, err
	}
	// vLLM refuses it too: not even a decode of all would fit a step.
	if c.MaxNumBatchedTokens < c.MaxNumSeqs {
		return none, fmt.Errorf("checking --max-num-batched-tokens: %d, want at least the %d of --max-num-seqs", c.MaxNumBatchedTokens, c.MaxNumSeqs)
	}
	return c, c.Validate()
}

// asVersion makes the scheduler that of the profile's version: asynchronous since
// 0.14, the whole prompt reserved since 0.19, and since 0.24 a watermark and long
// prompts that may use a whole step when they are alone. What llmreplay fit found
// knows the first two itself.
func (o *options) asVersion(f *pflag.FlagSet, fitted bool, c *simengine.Config) error {
	profiles := vllmmetrics.Profiles()
	at := slices.Index(profiles, vllmmetrics.Profile(o.profile))
	since := func(p vllmmetrics.Profile) bool { return at >= slices.Index(profiles, p) }
	if !fitted {
		c.AsyncScheduling = since(vllmmetrics.V019)
		c.AdmitByChunk = !since(vllmmetrics.V019)
	}
	c.LongPrefillAlone = !since(vllmmetrics.Main)
	for _, name := range []string{"watermark", "long-prefill-token-threshold-adaptive", "max-num-queued-reqs"} {
		if f.Changed(name) && !since(vllmmetrics.Main) {
			return fmt.Errorf("checking --%s: %s doesn't have it", name, o.profile)
		}
	}
	return nil
}

// maxLoRAs is that of the metrics: 0 without adapters.
func (o *options) maxLoRAs() int {
	if len(o.served) == 0 && !o.loadLoRA {
		return 0
	}
	return o.slots
}

// size sets the pool and what depends on it: a context that wasn't asked for
// is as long as the pool allows.
func (o *options) size(f *pflag.FlagSet, c *simengine.Config) error {
	tokens := c.KVTokens()
	for _, flag := range []struct {
		name  string
		value int
		to    *int
	}{
		{"block-size", o.blockSize, &c.BlockSize},
		{"kv-tokens", o.kvTokens, &tokens},
		{"max-model-len", o.maxModelLen, &c.MaxModelLen},
	} {
		if !f.Changed(flag.name) {
			continue
		}
		if flag.value < 1 || flag.value > simengine.MaxTokens {
			return fmt.Errorf("checking --%s: %d, want 1 to %d", flag.name, flag.value, simengine.MaxTokens)
		}
		*flag.to = flag.value
	}
	c.Blocks = c.BlocksFor(tokens)
	if !f.Changed("max-model-len") {
		c.MaxModelLen = min(c.MaxModelLen, c.KVTokens())
	}
	return nil
}
