// Package recording reads what "real record" wrote in testdata/vllm: what vLLM
// itself answered, version by version.
package recording
