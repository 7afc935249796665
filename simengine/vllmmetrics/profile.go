package vllmmetrics

import "slices"

// Profile is a vLLM version whose names are shown.
type Profile string

// The profiles: names came and went with versions.
const (
	V09  Profile = "vllm-0.9"  // 0.9.2: gpu_* and kv_* names of the cache, time per output token
	V011 Profile = "vllm-0.11" // as 0.9, and inter-token latency
	Main Profile = "main"      // kv_* only, waiting by reason, tokens by source, pool size in tokens
)

// Profiles lists them, oldest first.
func Profiles() []Profile { return []Profile{V09, V011, Main} }

// old tells whether the profile is one of those before the renames of 0.12.
func (p Profile) old() bool { return p != Main }

func (p Profile) known() bool { return slices.Contains(Profiles(), p) }

// reasons to finish, all of which have a series from the start.
func (p Profile) reasons() []string {
	if p.old() {
		return []string{"stop", "length", "abort"}
	}
	return []string{"stop", "length", "abort", "error", "repetition"}
}
