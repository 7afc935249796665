package main

// What is simulated unless flags say otherwise.
const (
	// defaultPreset is a model whose prompts take long enough that the noise of
	// a busy laptop, a few milliseconds, doesn't decide the comparison.
	defaultPreset = "llama3-70b-tp4-a100"
	// defaultKVTokens makes the caches as small for this short file as real
	// ones are for a day of conversations: three hold all of it and one doesn't.
	defaultKVTokens = 12_288
)
