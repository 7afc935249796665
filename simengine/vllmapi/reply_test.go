package vllmapi

import (
	"slices"
	"strings"
	"testing"
)

// text is what was said.
func (r reply) text() string {
	if len(r.parts) == 0 {
		return ""
	}
	return r.parts[0].text()
}

// The figures that the documentation states.
func TestNaturalLengthsAreSpreadEvenly(t *testing.T) {
	const samples = 20_000
	shortest, longest, sum := 1<<30, 0, 0
	for seed := range uint64(samples) {
		r := plan(seed, limits{maxTokens: 1000}, script{})
		n := r.count
		shortest, longest, sum = min(shortest, n), max(longest, n), sum+n
		if r.finish != "stop" || r.token(n-1) != tokenEndOfTurn || len(r.text()) != 4*(n-1) {
			t.Fatalf("plan(%d): %d tokens, %d bytes, finish %s", seed, n, len(r.text()), r.finish)
		}
	}
	if shortest != naturalMin || longest != naturalMax {
		t.Errorf("replies have %d to %d tokens, want %d to %d", shortest, longest, naturalMin, naturalMax)
	}
	// Five sigma of the mean of so many uniform lengths is 2.5.
	if mean := float64(sum) / samples; mean < 133.5 || mean > 138.5 {
		t.Errorf("the mean length is %.1f, want 136", mean)
	}
}

func TestEachGeneratedTokenIsFourBytesOfText(t *testing.T) {
	r := plan(7, limits{maxTokens: 300, ignoreEOS: true}, script{})
	if r.count != 300 || len(r.text()) != 1200 || r.finish != "length" {
		t.Fatalf("%d tokens, %d bytes, finish %s", r.count, len(r.text()), r.finish)
	}
	if !slices.Equal(appendText(nil, r.text()), r.appendTokens(nil, 0, r.count)) {
		t.Error("the text's tokens are not those that were generated")
	}
	for _, c := range []byte(r.text()) {
		if c < ' ' || c > '~' {
			t.Fatalf("byte %#x is not plain text", c)
		}
	}
	if words := strings.Fields(r.text()); len(words) != 300 {
		t.Errorf("%d words, want 300", len(words))
	}
}

func TestLimitsOfAReply(t *testing.T) {
	whole := plan(3, limits{maxTokens: 1000}, script{})
	natural := whole.count
	for _, c := range []struct {
		name   string
		l      limits
		tokens int
		finish string
	}{
		{"bounded", limits{maxTokens: 5}, 5, "length"},
		{"one token", limits{maxTokens: 1}, 1, "length"},
		{"just long enough", limits{maxTokens: natural}, natural, "stop"},
		{"one too short", limits{maxTokens: natural - 1}, natural - 1, "length"},
		{"no end of turn", limits{maxTokens: natural + 9, ignoreEOS: true}, natural + 9, "length"},
		{"minimum", limits{maxTokens: 1000, minTokens: natural + 50}, natural + 51, "stop"},
		{"minimum is maximum", limits{maxTokens: natural, minTokens: natural}, natural, "length"},
	} {
		r := plan(3, c.l, script{})
		if r.count != c.tokens || r.finish != c.finish || r.reason != nil {
			t.Errorf("%s: %d tokens, %s, %v; want %d, %s, none", c.name, r.count, r.finish, r.reason, c.tokens, c.finish)
		}
		if shared := min(c.tokens, natural) - 1; !strings.HasPrefix(r.text(), whole.text()[:max(0, 4*shared-1)]) {
			t.Errorf("%s: limits change what is said", c.name)
		}
	}
}

func TestStopStringsCutTheTextBeforeThem(t *testing.T) {
	l := limits{maxTokens: 40, ignoreEOS: true}
	whole := plan(5, l, script{}).text()
	for _, c := range []struct {
		name       string
		begin, end int // of the stop string in the text
	}{
		{"a whole token", 20, 24}, {"inside a token", 21, 23}, {"over tokens", 22, 31}, {"at the front", 0, 3}, {"at the end", 157, 160},
	} {
		stop := whole[c.begin:c.end]
		begin := strings.Index(whole, stop)
		l.stop = []string{"absent!", stop}
		r := plan(5, l, script{})
		tokens := (begin + len(stop) + 3) / 4
		if r.text() != whole[:begin] || r.count != tokens || r.finish != "stop" || r.reason != stop {
			t.Errorf("%s: text %q, %d tokens, %s, %v; want %q, %d tokens", c.name, r.text(), r.count, r.finish, r.reason, whole[:begin], tokens)
		}
		l.keepStop = true
		if r := plan(5, l, script{}); r.text() != whole[:begin+len(stop)] {
			t.Errorf("%s: kept text %q, want %q", c.name, r.text(), whole[:begin+len(stop)])
		}
		l.keepStop = false
	}
}

// A slow twin of the search for stop strings: token by token, as an engine
// looks.
func TestStopStringsAgainstATwin(t *testing.T) {
	for seed := range uint64(300) {
		l := limits{maxTokens: 60, ignoreEOS: true, minTokens: int(seed % 40)}
		whole := plan(seed, l, script{}).text()
		a, b := int(mix(seed)%200), int(mix(seed+1)%200)
		l.stop = []string{whole[a : a+1+int(seed%5)], whole[b : b+2], "zz"}
		want, tokens := whole, 60
		for n := l.minTokens + 1; n <= 60 && tokens == 60; n++ {
			first := -1
			for _, s := range l.stop {
				// Only what ends in the newest token is new.
				for end := 4*n - 3; end <= 4*n; end++ {
					begin := end - len(s)
					if begin >= 0 && whole[begin:end] == s && (first < 0 || end < first || end == first && begin < len(want)) {
						first, want, tokens = end, whole[:begin], n
					}
				}
			}
		}
		if r := plan(seed, l, script{}); r.text() != want || r.count != tokens {
			t.Fatalf("plan(%d, stop %q, min %d) = %q, %d tokens; want %q, %d", seed, l.stop, l.minTokens, r.text(), r.count, want, tokens)
		}
	}
}

func TestStopTokenEndsTheReplyWithoutText(t *testing.T) {
	l := limits{maxTokens: 40, ignoreEOS: true}
	whole := plan(9, l, script{})
	l.stopTokens = map[token]struct{}{whole.token(12): {}}
	r := plan(9, l, script{})
	i := slices.Index(whole.appendTokens(nil, 0, whole.count), whole.token(12))
	if r.count != i+1 || r.text() != whole.text()[:4*i] || r.finish != "stop" || r.reason != whole.token(12) {
		t.Errorf("%d tokens, %q, %s, %v; want %d tokens", r.count, r.text(), r.finish, r.reason, i+1)
	}
}
