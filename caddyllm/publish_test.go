package caddyllm

import (
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// Placeholders are of the last attempt, and of the last of several proxies.
func TestPlaceholdersAreOfTheLastChoice(t *testing.T) {
	repl := caddy.NewReplacer()
	const text = "{http.reverse_proxy.llm.upstream} {http.reverse_proxy.llm.reason} {http.reverse_proxy.llm.attempt} " +
		"{http.reverse_proxy.llm.prompt_tokens} {http.reverse_proxy.llm.matched_tokens} " +
		"{http.reverse_proxy.llm.predicted_ttft_seconds} {http.reverse_proxy.llm.cached_tokens}|{http.reverse_proxy.llm.other}"
	expect := func(want string) {
		t.Helper()
		if got := repl.ReplaceAll(text, ""); got != want {
			t.Errorf("placeholders say %q, want %q", got, want)
		}
	}
	expect("      |")
	first := record{upstream: "a:1", reason: "prefix", attempt: 1, prompt: 90, matched: 64, predicted: 0.25, cached: -1, decided: true}
	tell(repl, &first)
	expect("a:1 prefix 1 90 64 0.25 |")
	first.cached = 0
	expect("a:1 prefix 1 90 64 0.25 0|")
	first = record{upstream: "b:1", reason: "retry", attempt: 2, prompt: 90, predicted: 0.5, cached: -1, decided: true}
	expect("b:1 retry 2 90 0 0.5 |")
	second := record{upstream: "c:1", reason: "fallback:path", attempt: 1, cached: -1}
	tell(repl, &second)
	expect("c:1 fallback:path 1    |")
}
