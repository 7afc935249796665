package main

const (
	defaultPreset   = "llama3.1-8b-rtx4090"
	defaultKVTokens = 0
)
