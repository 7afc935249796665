package prompt

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prefix"
)

// keyed is a prompt with memory of its own, and what tells it apart to its last
// byte, also where it is shorter than a block.
type keyed struct {
	Prompt
	whole uint64
}

// keyedBy takes over what a scanner has just found.
func keyedBy(s *Scanner, p Prompt) keyed {
	p.Chain = slices.Clone(p.Chain)
	return keyed{p, wholeOf(&s.chain, s.seed(p.Model))}
}

// wholeOf fills up the open block, its length told, and has the last hash of a
// chain, which is of no use afterwards.
func wholeOf(c *prefix.Chain, seed uint64) uint64 {
	c.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(c.Bytes())), make([]byte, prefix.MaxBlock)...))
	hashes := c.Seal(seed)
	return hashes[len(hashes)-1]
}

func scanned(t *testing.T, kind Kind, body string) keyed {
	t.Helper()
	var s Scanner
	p, status := s.Scan(kind, []byte(body), true, block)
	if status != OK {
		t.Fatalf("Scan(%v, %.200q) = status %d, want OK", kind, body, status)
	}
	return keyedBy(&s, p)
}

// words is text of n bytes that is the same for the same key, and like no
// other's.
func words(key uint64, n int) string {
	r := rand.New(rand.NewPCG(key, 99))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "w%d ", r.IntN(5000))
	}
	return b.String()[:n]
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func shared(a, b []uint64) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func wantSame(t *testing.T, kind Kind, a, b string) {
	t.Helper()
	p, q := scanned(t, kind, a), scanned(t, kind, b)
	if p.whole != q.whole || !slices.Equal(p.Chain, q.Chain) || p.Bytes != q.Bytes {
		t.Errorf("%v: two dresses of one prompt differ (%d and %d bytes, %d blocks shared):\n%.300s\n%.300s",
			kind, p.Bytes, q.Bytes, shared(p.Chain, q.Chain), a, b)
	}
}

func wantDifferent(t *testing.T, kind Kind, a, b string) {
	t.Helper()
	if p, q := scanned(t, kind, a), scanned(t, kind, b); p.whole == q.whole {
		t.Errorf("%v: two prompts have one key:\n%.300s\n%.300s", kind, a, b)
	}
}
