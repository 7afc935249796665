package vllmapi

import (
	"math/rand/v2"
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
			if back, ok := tokenOf(x.id()); !ok || back != x {
				t.Errorf("token %d of %s can't be sent back", x, name)
			}
			if x>>53 != 0 {
				t.Errorf("token %d of %s is no exact number in JSON", x, name)
			}
			if _, text := strings.CutSuffix(name, "zeros"); !text && name != "zero" && x.id()>>32 != 0 {
				t.Errorf("token %d of %s has an id of more than 32 bits, %d", x, name, x.id())
			}
		}
	}
}

// Ids stand for one token each, there and back; those of plain text fit 32 bits.
func TestIDsOfTokens(t *testing.T) {
	for _, text := range []string{"Where is my bicycle?\n\t{\"a\": 1}\r", "größer ☃", "\x00\x7f"} {
		for _, x := range append(appendText(nil, text), appendMedia(nil, text)...) {
			if back, ok := tokenOf(x.id()); !ok || back != x {
				t.Errorf("%q: token %x has the id %x, which is of %x, %v", text, x, x.id(), back, ok)
			}
			if x.id()>>32 != 0 && strings.HasPrefix(text, "Where") {
				t.Errorf("%q: token %x has the id %x", text, x, x.id())
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 1_000_000 {
		id := random.Uint64() >> random.UintN(64)
		if x, ok := tokenOf(id); ok {
			if found++; x.id() != id {
				t.Fatalf("id %x is of token %x, whose id is %x", id, x, x.id())
			}
		}
	}
	if found < 100 {
		t.Errorf("of a million random ids %d are of tokens: no trial", found)
	}
}

// A number that no vocabulary has is refused, whatever its size, with the words
// and the choice among several that vLLM has.
func TestTokenIDsOutOfVocabulary(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		for ids, told := range map[string]string{
			"128256": "128256", "1073741824": "1073741824", "2147483647": "2147483647", "2147483648": "2147483648", "3000000000": "3000000000", "4294967295": "4294967295", "4294967296": "4294967296", "4294967301, 1": "4294967301",
			"8589934592": "8589934592", "1099511627776": "1099511627776", "9007199254740993": "9007199254740993",
			"18446744073709551616": "18446744073709551616", "5, 999999, 9999999, 999998": "9999999",
		} {
			r := b.post(textPath, `{"prompt": [`+ids+`], "max_tokens": 1}`)
			if got, want := r.refused(t, 400, "BadRequestError", ""), "Token id "+told+" is out of vocabulary"; got != want {
				t.Errorf("%s: %s, want %s", ids, got, want)
			}
		}
		if r := b.post(textPath, `{"prompt": [0, -0, 128255], "max_tokens": 1, "stop_token_ids": [128255]}`); r.Code != 200 {
			t.Errorf("a vocabulary's own ids: %d %s", r.Code, r.Body)
		}
		for ids, want := range map[string]string{
			"60, 4294967295": `{"prompt":"[60]"}`,
			"60, 4294967296": `{"error":{"message":"number too large to fit in target type","type":"BadRequestError","param":null,"code":400}}`,
			"-1": `{"error":{"message":"1 validation error:\n  {'type': 'greater_than_equal', 'loc': 'body.tokens.0', 'msg': 'Input should be greater than or equal to 0', ` +
				`'input': '-1', 'ctx': {'ge': 0}}","type":"Bad Request","param":"body.tokens.0","code":400}}`,
			"9223372036854775808": `{"error":{"message":"1 validation error:\n  {'type': 'less_than_equal', 'loc': 'body.tokens.0', 'msg': 'Input should be less than or equal to 9223372036854775807', ` +
				`'input': '9223372036854775808', 'ctx': {'le': 9223372036854775807}}","type":"Bad Request","param":"body.tokens.0","code":400}}`,
		} {
			if r := b.post("/detokenize", `{"tokens": [`+ids+`]}`); r.Body.String() != want {
				t.Errorf("/detokenize %s: %s, want %s", ids, r.Body, want)
			}
		}
	})
}

// A prompt that is nothing of what a prompt may be is told what it lacks to be
// each of the four, as by pydantic.
func TestPromptsThatAreNone(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		for prompt, want := range map[string][]string{
			`5`: {"list_type body.prompt", "list_type body.prompt", "string_type body.prompt", "list_type body.prompt"},
			`[1, -1]`: {"greater_than_equal body.prompt.1", "list_type body.prompt.0", "list_type body.prompt.1",
				"string_type body.prompt", "string_type body.prompt.0", "string_type body.prompt.1"},
			`[[1], "x"]`: {"int_type body.prompt.0", "int_parsing body.prompt.1", "list_type body.prompt.1", "string_type body.prompt", "string_type body.prompt.0"},
			`["a", 1.5]`: {"int_parsing body.prompt.0", "int_from_float body.prompt.1", "list_type body.prompt.0", "list_type body.prompt.1",
				"string_type body.prompt", "string_type body.prompt.1"},
		} {
			message := b.post(textPath, `{"prompt": `+prompt+`}`).refused(t, 400, "Bad Request", strings.Fields(want[0])[1])
			var got []string
			for _, line := range strings.Split(message, "\n")[1:] {
				words := strings.Split(line, "'")
				got = append(got, words[3]+" "+words[7])
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", prompt, got, want)
			}
		}
	})
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
