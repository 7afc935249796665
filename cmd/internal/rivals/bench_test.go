package rivals

import (
	"fmt"
	"testing"
	"time"
)

// bench is a proxy with a policy and targets; what was sent stays in flight
// until it is ended.
type bench struct {
	t       *testing.T
	policy  Policy
	targets []Target
	now     time.Duration
	next    uint64
	truth   fakeTruth
}

// fakeTruth has caches as told.
type fakeTruth struct {
	cached map[int]int
	first  map[int]time.Duration
}

func (f *fakeTruth) Cached(up int, _ *Request) int { return f.cached[up] }
func (f *fakeTruth) Forecast(now time.Duration, up int, _ *Request) (time.Duration, int) {
	return now + f.first[up], f.cached[up]
}
func (f *fakeTruth) Work(_, tokens, _ int) float64 { return float64(tokens) * 1e-5 }

func newBench(t *testing.T, name string, upstreams int) *bench {
	t.Helper()
	b := &bench{t: t, truth: fakeTruth{make(map[int]int), make(map[int]time.Duration)}}
	var err error
	b.policy, err = New(name, Env{Upstreams: upstreams, Seed: 1, BlockTokens: 16, Truth: &b.truth})
	if err != nil {
		t.Fatal(err)
	}
	for i := range upstreams {
		b.targets = append(b.targets, Target{Upstream: i})
	}
	return b
}

// known are the numbers of all blocks that any test has.
var known = make(map[uint64]int32)

func numbers(chain []uint64) []int32 {
	var all []int32
	for _, h := range chain {
		if _, ok := known[h]; !ok {
			known[h] = int32(len(known))
		}
		all = append(all, known[h])
	}
	return all
}

// prompt consists of parts of 1024 bytes each; equal names are equal parts.
func prompt(parts ...string) *Request {
	var text []byte
	for _, p := range parts {
		text = append(text, fmt.Sprintf("%-1024s", p)...)
	}
	chain := func(block int) []uint64 {
		var hashes []uint64
		h := uint64(0)
		for i := 0; i+block <= len(text); i += block {
			for _, c := range text[i : i+block] {
				h = mix(h ^ uint64(c))
			}
			hashes = append(hashes, h)
		}
		return hashes
	}
	tokens := len(text) / bytesPerToken
	return &Request{
		Bytes: len(text), Tokens: tokens, PromptTokens: tokens, Chain: chain,
		Blocks:      func(block int) []int32 { return numbers(chain(block)) },
		TokenBlocks: func(block int) []int32 { return numbers(chain(block * bytesPerToken)) },
		UserKey:     func(n int) uint64 { return chain(n)[0] },
	}
}

func (b *bench) send(q *Request) (up int, id uint64) {
	b.t.Helper()
	b.next++
	q.ID = b.next
	at := b.policy.Pick(b.now, q, b.targets)
	if at < 0 || at >= len(b.targets) {
		b.t.Fatalf("place %d of %d is chosen", at, len(b.targets))
	}
	return b.targets[at].Upstream, q.ID
}

// serve sends and completes.
func (b *bench) serve(q *Request) int {
	up, id := b.send(q)
	b.policy.FirstToken(b.now, id)
	b.end(id)
	return up
}

func (b *bench) end(id uint64) {
	b.policy.End(b.now, id, Completed, &Usage{PromptTokens: 100, OutputTokens: 100})
}

// keep puts n requests of their own in flight on an upstream.
func (b *bench) keep(up, n int) {
	all := b.targets
	b.targets = []Target{{Upstream: up}}
	for i := range n {
		b.send(prompt(fmt.Sprint("kept", up, b.next, i)))
	}
	b.targets = all
}

// warm lets an upstream serve a prompt.
func (b *bench) warm(up int, q *Request) {
	all := b.targets
	b.targets = []Target{{Upstream: up}}
	b.serve(q)
	b.targets = all
}

// counts of n prompts, each ended at once.
func (b *bench) counts(n int, q func(i int) *Request) []int {
	counts := make([]int, len(b.targets))
	for i := range n {
		counts[b.serve(q(i))]++
	}
	return counts
}

func own(i int) *Request { return prompt(fmt.Sprint("own", i), "x") }
