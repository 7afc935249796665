package fit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Preset returns the preset of that name, or what a file ending in .json says
// that WriteJSON wrote.
func Preset(nameOrFile string) (simengine.Preset, error) {
	if !strings.HasSuffix(nameOrFile, ".json") {
		if p, ok := simengine.PresetByName(nameOrFile); ok {
			return p, nil
		}
		var names []string
		for _, p := range simengine.Presets() {
			names = append(names, p.Name)
		}
		return simengine.Preset{}, fmt.Errorf("unknown preset %q, want one of %s, or a .json file of llmreplay fit", nameOrFile, strings.Join(names, ", "))
	}
	b, err := os.ReadFile(nameOrFile)
	if err != nil {
		return simengine.Preset{}, fmt.Errorf("reading preset: %w", err)
	}
	var rep Report
	if err := json.Unmarshal(b, &rep); err != nil {
		return simengine.Preset{}, fmt.Errorf("reading preset %s: %w", nameOrFile, err)
	}
	p := simengine.Preset{
		Name:   strings.TrimSuffix(filepath.Base(nameOrFile), ".json"),
		Source: fmt.Sprintf("fit to a run of %s on %s", or(rep.Model), or(rep.Device)),
		Config: rep.config(),
	}
	if err := p.Config.Validate(); err != nil {
		return simengine.Preset{}, fmt.Errorf("reading preset %s: %w", nameOrFile, err)
	}
	return p, nil
}

// config is what the report was made with, but for the length of the first step:
// a server that is simulated has served before.
func (rep *Report) config() simengine.Config {
	e, c := rep.Engine, rep.Coefficients
	return simengine.Config{
		BlockSize: e.BlockSize, Blocks: e.Blocks, MaxNumSeqs: e.MaxSeqs, MaxNumBatchedTokens: e.MaxBatched,
		MaxModelLen: e.MaxModelLen, MaxRequests: simengine.DefaultMaxRequests,
		AsyncScheduling: e.Async, AdmitByChunk: e.ByChunk, DisablePrefixCaching: !e.PrefixCaching,
		Cost: simengine.Cost{
			Base: seconds(c.Base / 1e3), PrefillToken: c.PrefillToken / 1e6, DecodeSeq: c.DecodeSeq / 1e6,
			ContextToken: c.ContextToken / 1e9, AttentionTerm: c.AttentionTerm / 1e9,
			PrefillFree: c.PrefillFree, Experts: seconds(c.Experts / 1e3), ExpertShare: c.ExpertShare,
			RequestOverhead: seconds(c.RequestOverhead / 1e3),
		},
	}
}
