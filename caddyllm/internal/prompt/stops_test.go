package prompt

import (
	"bytes"
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

// found is what seek finds in a text that stands somewhere in memory.
func found(text []byte, carry uint64) (quotes, odd []int, after uint64) {
	for at := 0; at < len(text); at += stride {
		stop := seek(text, at, carry)
		at, carry = stop.at, stop.carry
		for m := stop.quotes; m != 0; m &= m - 1 {
			quotes = append(quotes, at+bits.TrailingZeros64(m))
		}
		for m := stop.odd; m != 0; m &= m - 1 {
			if i := at + bits.TrailingZeros64(m); i < len(text) {
				odd = append(odd, i)
			} else if i == len(text) {
				after = 1 // the text ends with half an escape, which isn't canonical
			}
		}
	}
	return quotes, odd, after | carry
}

// byteByByte is its twin.
func byteByByte(text []byte, carry uint64) (quotes, odd []int, after uint64) {
	for i, c := range text {
		if c == '"' && carry == 0 {
			quotes = append(quotes, i)
		}
		if carry == 1 && !shortest[c] {
			odd = append(odd, i)
		}
		if carry == 1 || c != '\\' {
			carry = 0
		} else {
			carry = 1
		}
	}
	return quotes, odd, carry
}

// agree compares what is found, with vectors and without, to what the twin finds,
// and returns how many quotes that is.
func agree(t *testing.T, text []byte, carry uint64) int {
	t.Helper()
	wantQuotes, wantOdd, wantAfter := byteByByte(text, carry)
	same := func(how string) {
		t.Helper()
		quotes, odd, after := found(text, carry)
		if !slices.Equal(quotes, wantQuotes) || !slices.Equal(odd, wantOdd) || after != wantAfter {
			t.Fatalf("seek(%q), carry %d, %s: quotes %v, odd %v, carry %d; want %v, %v, %d", text, carry, how, quotes, odd, after, wantQuotes, wantOdd, wantAfter)
		}
	}
	same("as here")
	portably(func() { same("with planes") })
	return len(wantQuotes)
}

// someText is up to n bytes of one of several kinds.
func someText(r *rand.Rand, n int) []byte {
	kinds := []string{everyEscape, "\\\\\\\"\"a\x00\x80\xa2\xdc\xff]#!", "\\\"a\x00]#!\x7f", "\\\"abcdefghijk", "\\nnnn#", "n", "\xe9"}[r.IntN(7)]
	text := make([]byte, n)
	for i := range text {
		text[i] = kinds[r.IntN(len(kinds))]
		if kinds == everyEscape && i > 0 && i%4 == 0 {
			text[i-1] = '\\'
		}
	}
	return text
}

func TestStopsAreThoseThatAByteByByteLookFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	quotes := 0
	for range 20_000 {
		quotes += agree(t, someText(r, r.IntN(8*stride)), uint64(r.IntN(2)))
	}
	if quotes < 100_000 {
		t.Errorf("only %d quotes were found", quotes)
	}
}

// Each length at each place of a line of the cache, with each byte escaped.
func TestStopsAreFoundAtAllLengthsAndPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	room := make([]byte, stride+200)
	for n := range 201 {
		for place := range stride {
			text := room[place : place+n : place+n]
			copy(text, someText(r, n))
			agree(t, text, uint64(n+place)&1)
		}
	}
	for c := range 256 {
		for i := range 2 * stride {
			text := bytes.Repeat([]byte{byte(c)}, 2*stride+1)
			text[i] = '\\'
			agree(t, text, 0)
			agree(t, text, 1)
		}
	}
}

func FuzzStops(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, carry bool) {
		if carry {
			agree(t, text, 1)
			return
		}
		agree(t, text, 0)
	})
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
