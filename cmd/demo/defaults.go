package main

// What is simulated unless flags say otherwise.
const (
	// defaultPreset is the card that many own, and the one whose preset was
	// checked against a recorded run.
	defaultPreset = "llama3.1-8b-rtx4090"
	// defaultKVTokens is less than the preset's, as on a card that serves other
	// things too: of the committed conversations' 28,000 tokens three such
	// caches hold all and one doesn't, which is what a real cache is to a real
	// day's conversations.
	defaultKVTokens = 12_288
)
