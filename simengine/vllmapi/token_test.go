package vllmapi

import (
	"slices"
	"strings"
	"testing"
)

func TestTextComesBackFromItsTokens(t *testing.T) {
	for _, text := range []string{"", "a", "abcd", "abcde", "größer als ☃", "\x00\x00\x00", strings.Repeat("word ", 100)} {
		tokens := appendText(nil, text)
		if got := detokenize(tokens); got != text {
			t.Errorf("detokenize(%q) = %q", text, got)
		}
		if want := (len(text) + 3) / 4; len(tokens) != want {
			t.Errorf("%q has %d tokens, want %d", text, len(tokens), want)
		}
	}
}

// Nothing that a client writes passes for a special token or for media, and
// short texts differ from longer ones with zeros.
func TestTokensOfDifferentKindsDiffer(t *testing.T) {
	kinds := map[token]string{}
	for name, tokens := range map[string][]token{
		"specials":   {tokenBegin, tokenHeader, tokenHeaderEnd, tokenEndOfTurn, tokenTools, tokenCall, tokenCallPart, tokenCallResult, tokenParticipant},
		"zero":       appendText(nil, "\x00"),
		"two zeros":  appendText(nil, "\x00\x00"),
		"four zeros": appendText(nil, "\x00\x00\x00\x00"),
		"media":      appendMedia(nil, "x"),
		"media too":  appendMedia(nil, "y"),
	} {
		for _, x := range tokens {
			if other, ok := kinds[x]; ok {
				t.Errorf("token %d is both %s and %s", x, name, other)
			}
			kinds[x] = name
			if !x.valid() {
				t.Errorf("token %d of %s can't be sent back", x, name)
			}
			if x>>53 != 0 {
				t.Errorf("token %d of %s is no exact number in JSON", x, name)
			}
		}
	}
}

// The chain against its meaning: two prompts have as many equal hashes as they
// have equal leading blocks.
func TestChainedHashesAreEqualAsFarAsPrefixesAre(t *testing.T) {
	const blockSize = 4
	base := appendText(nil, strings.Repeat("0123456789", 20)) // 50 tokens
	if got := len(chain(1, base, blockSize)); got != 12 {
		t.Fatalf("50 tokens have %d blocks, want 12", got)
	}
	for i := range base {
		other := slices.Clone(base)
		other[i]++
		a, b := chain(1, base, blockSize), chain(1, other, blockSize)
		same := 0
		for same < len(a) && a[same] == b[same] {
			same++
		}
		if same != min(i/blockSize, len(a)) {
			t.Errorf("token %d changed: %d blocks are equal, want %d", i, same, i/blockSize)
		}
		for k := same; k < len(a); k++ {
			if a[k] == b[k] {
				t.Errorf("token %d changed: block %d is equal again", i, k)
			}
		}
		if fingerprint(1, base) == fingerprint(1, other) {
			t.Errorf("token %d changed: the fingerprint did not", i)
		}
	}
	if fingerprint(1, base) == fingerprint(1, base[:49]) {
		t.Error("the fingerprint leaves the last tokens out")
	}
}

func TestCacheSeedsDifferByModelAndSalt(t *testing.T) {
	seen := map[uint64][2]string{}
	for _, p := range [][2]string{{"m", ""}, {"m", "s"}, {"ms", ""}, {"", "ms"}, {"m", "t"}, {"n", "s"}} {
		h := cacheSeed(p[0], p[1])
		if other, ok := seen[h]; ok {
			t.Errorf("%q and %q share a cache", p, other)
		}
		seen[h] = p
	}
}
