package caddyllm

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// encode undoes decode.
func encode(t *testing.T, name string, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch name {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// prose is text that shrinks as prose does.
func prose(n int) []byte {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString([]string{"The ", "quick ", "brown ", "fox ", "jumps. "}[(i*i+i/7)%5])
	}
	return []byte(b.String()[:n])
}

// FC-11: what is coded reads as what isn't, stacked or not, also where a
// decoder was used for something else before.
func TestFC11CodedBodiesAreRead(t *testing.T) {
	text := prose(40_000)
	for _, names := range [][]string{{"gzip"}, {"deflate"}, {"zstd"}, {"br"}, {"gzip", "zstd"}, {"br", "gzip", "zstd"}} {
		coded := text
		for _, name := range names {
			coded = encode(t, name, coded)
		}
		h := http.Header{"Content-Encoding": {strings.ToUpper(strings.Join(names, " , "))}}
		order, ok := codings(h)
		if !ok || len(order) != len(names) || order[0] != names[len(names)-1] {
			t.Fatalf("codings(%v) = %v, %v", h, order, ok)
		}
		for range 2 {
			got, complete, err := decode(order, coded, true, 1<<20)
			if err != nil || !complete || !bytes.Equal(got, text) {
				t.Errorf("%v: %d bytes, complete %v, %v; want %d", names, len(got), complete, err, len(text))
			}
			got, complete, err = decode(order, coded, true, 10_000)
			if err != nil || complete || !bytes.Equal(got, text[:10_000]) {
				t.Errorf("%v, of 10,000 bytes: %d, complete %v, %v", names, len(got), complete, err)
			}
			damaged := slices.Concat(coded[:len(coded)/2], []byte("damage"), coded[len(coded)/2+6:])
			if _, _, err := decode(order, damaged, true, 1<<20); err == nil {
				t.Errorf("%v, damaged: no error", names)
			}
			if _, _, err := decode(order, coded[:len(coded)-3], true, 1<<20); err == nil {
				t.Errorf("%v, cut off: no error", names)
			}
		}
	}
	// The head of a longer body shows the head of its text.
	coded := encode(t, "gzip", text)
	got, complete, err := decode([]string{"gzip"}, coded[:len(coded)/2], false, 1<<20)
	if err != nil || complete || len(got) < 1000 || !bytes.HasPrefix(text, got) {
		t.Errorf("half a body: %d bytes, complete %v, %v", len(got), complete, err)
	}
	for _, unknown := range []string{"foo", "gzip, foo", "gzip,gzip,gzip,gzip", "compress"} {
		if list, ok := codings(http.Header{"Content-Encoding": {unknown}}); ok {
			t.Errorf("codings(%s) = %v, want unknown", unknown, list)
		}
	}
	if list, ok := codings(http.Header{"Content-Encoding": {"identity", ""}}); !ok || len(list) != 0 {
		t.Errorf("codings(identity) = %v, %v", list, ok)
	}
}

func TestADecompressionBombIsGivenUpEarly(t *testing.T) {
	zeros := make([]byte, 32<<20)
	for _, name := range []string{"gzip", "zstd", "br"} {
		bomb := encode(t, name, zeros)
		if _, _, err := decode([]string{name}, bomb, true, 512<<20); !errors.Is(err, errRatio) {
			t.Errorf("%s: %d bytes of zeros in %d: %v, want %v", name, len(zeros), len(bomb), err, errRatio)
		}
		twice := encode(t, "gzip", bomb)
		if _, _, err := decode([]string{"gzip", name}, twice, true, 512<<20); !errors.Is(err, errRatio) {
			t.Errorf("%s in gzip: %d bytes: %v, want %v", name, len(twice), err, errRatio)
		}
	}
}

func FuzzDecodeKeepsItsBounds(f *testing.F) {
	names := []string{"gzip", "deflate", "zstd", "br"}
	f.Add(uint8(0), []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"))
	f.Add(uint8(2), []byte("\x28\xb5\x2f\xfd\x04\x00"))
	f.Fuzz(func(t *testing.T, n uint8, coded []byte) {
		for _, whole := range []bool{true, false} {
			text, complete, err := decode([]string{names[n%4]}, coded, whole, 1<<16)
			if len(text) > 1<<16 || complete && !whole || err != nil && text != nil {
				t.Errorf("%d bytes, complete %v, %v", len(text), complete, err)
			}
		}
	})
}
