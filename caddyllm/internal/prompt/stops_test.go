package prompt

import (
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
)

// The twin goes from byte to byte.
func TestStopsAreThoseThatAByteByByteLookFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for range 20_000 {
		kinds := []string{"\\\\\\\"\"a\x00\x80\xa2\xdc\xff]#!", "\\\"a\x00]#!\x7f", "\\\"abcdefghijk"}[r.IntN(3)]
		var b [stride]byte
		for i := range b {
			b[i] = kinds[r.IntN(len(kinds))]
		}
		carry := uint64(r.IntN(2))
		var quote, slash, escaped uint64
		after := carry == 1
		for i, c := range b {
			switch c {
			case '"':
				quote |= 1 << i
			case '\\':
				slash |= 1 << i
			}
			if after {
				escaped |= 1 << i
			}
			after = c == '\\' && !after
		}
		q, s := look(&b)
		if inOrder(q) != quote || inOrder(s) != slash || inOrder(inOrder(q)) != q {
			t.Fatalf("look(%q) = %x, %x in order; want %x, %x", b, inOrder(q), inOrder(s), quote, slash)
		}
		for m := q; m != 0; m &= m - 1 {
			if at := place(bits.TrailingZeros64(m)); b[at] != '"' {
				t.Fatalf("place(%d) = %d, where %q has no quote", bits.TrailingZeros64(m), at, b)
			}
		}
		if e, next := escapedBy(s, carry); inOrder(e) != escaped || next == 1 != after {
			t.Fatalf("escapedBy(%q, %d) = %x in order, %d; want %x, %v", b, carry, inOrder(e), next, escaped, after)
		}
	}
}

// Texts of all lengths and kinds, so that strings, escapes and the end of the
// body fall on every place of a stride.
func TestTextsAgreeWithTheTwinWhereverTheyStand(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	pieces := []string{`\\`, `\"`, `\n`, `\u0041`, `\u000a`, `\/`, `\u6f22`, `\ud83d\ude00`, "é", "漢", "x", "prose ", strings.Repeat("calm and long ", 12), `{\"a\": [1, 2]}`}
	var s Scanner
	for range 3000 {
		var b strings.Builder
		b.WriteString(`{"messages":[`)
		for i := range r.IntN(4) {
			if i > 0 {
				b.WriteString([]string{",", ", "}[r.IntN(2)])
			}
			b.WriteString(`{"role":"user","content":"`)
			some := pieces[r.IntN(len(pieces)):]
			for range r.IntN(60) {
				b.WriteString(some[r.IntN(len(some))])
			}
			b.WriteString(`"}`)
		}
		b.WriteString(`]}`)
		body := []byte(b.String())
		compare(t, &s, Chat, body)
		whole, status := s.Scan(Chat, body, true, block)
		if status != OK {
			continue
		}
		chain := append([]uint64(nil), whole.Chain...)
		head := body[:r.IntN(len(body))]
		if p, _ := s.Scan(Chat, head, false, block); shared(p.Chain, chain) != len(p.Chain) {
			t.Fatalf("%q: %d of its %d blocks are those of %q", head, shared(p.Chain, chain), len(p.Chain), body)
		}
	}
}

// Behind the last landmark of a short value, and behind the last of all, the
// walks find their way alone.
func TestValuesBehindTheLandmarksAreRead(t *testing.T) {
	tool := `{"type":"function","function":{"name":"f","parameters":{"a":"b","long":"` + words(1, 100) + `","c": [1, "\u0041"],"a":{}}}}`
	tail := `{"tools":[` + tool + `],"messages":[{"role":"user","content":"a\u0041"},{"role":"user","content":"` + words(2, 500) + `"}]}`
	want := scanned(t, Chat, tail)
	for _, n := range []int{maxShort / 2, maxShort - 3, maxShort + 5, maxLandmarks - 5, maxLandmarks + 5} {
		for _, filler := range []string{`[],`, `"` + strings.Repeat("long", 20) + `",`} {
			body := `{"x":[` + strings.Repeat(filler, n) + `0],` + tail[1:]
			if got := scanned(t, Chat, body); !samePrompt(got, want) {
				t.Errorf("behind %d times %.9s: %d bytes, %d blocks of which %d are right; want %d bytes, %d blocks",
					n, filler, got.Bytes, len(got.Chain), shared(got.Chain, want.Chain), want.Bytes, len(want.Chain))
			}
		}
	}
}
