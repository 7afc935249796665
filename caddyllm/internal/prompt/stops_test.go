package prompt

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// shortest are the letters of escapes that are canonical.
var shortest = [256]bool{'"': true, '\\': true, 'n': true, 't': true, 'r': true, 'b': true, 'f': true}

// place is where in the text bit i of those by place in the word stands.
func place(i int) int { return (i<<3 + i>>3) & (stride - 1) }

// everyEscape has all bytes, of which each may come behind a backslash.
var everyEscape = func() string {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return string(all)
}()

// The twin goes from byte to byte.
func TestStopsAreThoseThatAByteByByteLookFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	found := 0
	for range 20_000 {
		kinds := []string{everyEscape, "\\\\\\\"\"a\x00\x80\xa2\xdc\xff]#!", "\\\"a\x00]#!\x7f", "\\\"abcdefghijk", "\\nnnn#", "n", "\xe9"}[r.IntN(7)]
		text := make([]byte, r.IntN(8*stride))
		for i := range text {
			text[i] = kinds[r.IntN(len(kinds))]
			if kinds == everyEscape && i > 0 && i%4 == 0 {
				text[i-1] = '\\'
			}
		}
		carry := uint64(r.IntN(2))
		after := carry == 1
		quotes, odd := make(map[int]bool), make(map[int]bool)
		for i, c := range text {
			if c == '"' && !after {
				quotes[i] = true
			}
			if after && !shortest[c] {
				odd[i] = true
			}
			after = c == '\\' && !after
		}
		for at := 0; at < len(text); at += stride {
			stop := seek(text, at, carry)
			at, carry = stop.at, stop.carry
			for m := stop.quotes; m != 0; m &= m - 1 {
				i := at + place(bits.TrailingZeros64(m))
				if !quotes[i] {
					t.Fatalf("seek(%q) finds a quote at %d", text, i)
				}
				delete(quotes, i)
				found++
			}
			for m := inOrder(stop.odd); m != 0; m &= m - 1 {
				i := at + bits.TrailingZeros64(m)
				if !odd[i] && i < len(text) {
					t.Fatalf("seek(%q) finds an odd escape at %d", text, i)
				}
				delete(odd, i)
			}
		}
		if len(quotes) > 0 || len(odd) > 0 || carry == 1 && !after {
			t.Fatalf("seek(%q) misses the quotes at %v and the letters at %v, or carries %d where %v is right", text, quotes, odd, carry, after)
		}
	}
	if found < 100_000 {
		t.Errorf("only %d quotes were found", found)
	}
}

// A square that is mirrored twice is as before.
func TestPlacesAreThoseInOrder(t *testing.T) {
	for i := range stride {
		if m := inOrder(1 << i); m != 1<<place(i) || inOrder(m) != 1<<i {
			t.Errorf("bit %d: place %d, in order %x, twice %x", i, place(i), m, inOrder(m))
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

// What stands behind a body in the same memory is no part of it.
func TestWhatFollowsABodyInMemoryIsNotRead(t *testing.T) {
	body := chatOf(1000)
	var s, twin Scanner
	for n := range body {
		alone := append(make([]byte, 0, n), body[:n]...)
		p, status := s.Scan(Chat, body[:n], false, 64)
		q, want := twin.Scan(Chat, alone, false, 64)
		if cap(s.body) != n {
			t.Fatalf("%d bytes may be read behind a body of %d", cap(s.body)-n, n)
		}
		if status != want || !slices.Equal(p.Chain, q.Chain) || p.Bytes != q.Bytes {
			t.Fatalf("%d bytes: status %d, %d bytes of prompt; where nothing follows %d, %d", n, status, p.Bytes, want, q.Bytes)
		}
	}
}
