package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/virtual"
)

// The load of the bounds: prompts of 512 tokens, half of them shared, 128 output
// tokens, blocks of 16, 100,000 KV tokens a replica.
const (
	promptTokens = 512
	outputTokens = 128
	blockSize    = 16
	kvTokens     = 100_000

	promptBlocks = promptTokens / blockSize
	sharedBlocks = promptBlocks / 2
	outputBlocks = outputTokens / blockSize
	families     = 16 // of prompts that share their first half

	// Requests per second for each replica, about half of what it can do.
	rate = 30.0
)

// load hands requests out in turn, as fast as they would come, and counts what
// becomes of them. Half of each prompt is that of its family.
type load struct {
	known    time.Duration // how long before its time an arrival may be told
	sim      *virtual.Sim
	random   *rand.Rand
	replicas int
	left     int
	at       time.Duration
	coming   []arrival // those to be told at once

	shared [families][sharedBlocks]uint64
	unique uint64   // the last hash of a block that nobody shares
	slots  []hashes // of requests on their way, by id
	spare  []uint64

	firsts, ends, cached int
	ttft                 time.Duration
}

// hashes are the block hashes of a request.
type hashes [promptBlocks + outputBlocks]uint64

// arrival is a request that is to come.
type arrival struct {
	at     time.Duration
	family int
}

// newLoad makes a load whose arrivals are known so long before their time: 0 is
// that of a router, which decides at the arrival.
func newLoad(replicas, requests int, known time.Duration) (*load, error) {
	l := &load{known: known, replicas: replicas, left: requests}
	l.sim = virtual.New(1, l)
	if known > 0 {
		l.sim.RunAhead()
	}
	l.random = l.sim.Random("load")
	for i := range l.shared {
		for j := range l.shared[i] {
			l.shared[i][j] = l.random.Uint64()
		}
	}
	c := simengine.Config{BlockSize: blockSize, MaxModelLen: 8192}
	c.Blocks = c.BlocksFor(kvTokens)
	for range replicas {
		if _, err := l.sim.Add(c); err != nil {
			return nil, err
		}
	}
	l.sim.Schedule(virtual.Event{})
	return l, nil
}

// result is what the requests saw.
type result struct {
	CachedPercent float64 // of prompt tokens
	TTFTMs        float64 // mean
}

// run runs until all requests have ended.
func (l *load) run() (r result, err error) {
	requests := l.left
	for l.sim.Run(l.sim.Now() + time.Second) {
	}
	if l.firsts != requests || l.ends != requests {
		return r, fmt.Errorf("%d of %d requests got a first token, %d ended", l.firsts, requests, l.ends)
	}
	n := float64(requests)
	return result{100 * float64(l.cached) / n / promptTokens, l.ttft.Seconds() * 1e3 / n}, nil
}

// Event is the next arrival, and those that are known by then.
func (l *load) Event(e virtual.Event) {
	l.coming = l.coming[:0]
	for until := e.At + l.known; l.left > len(l.coming) && l.at <= until; {
		l.coming = append(l.coming, arrival{l.at, l.random.IntN(families)})
		l.at += time.Duration(l.random.ExpFloat64() / (rate * float64(l.replicas)) * float64(time.Second))
	}
	// Engine by engine, for the sake of the caches.
	for i := range min(l.replicas, len(l.coming)) {
		for j := i; j < len(l.coming); j += l.replicas {
			l.submit((l.left-j)%l.replicas, l.coming[j])
		}
	}
	if l.left -= len(l.coming); l.left > 0 {
		l.sim.Schedule(virtual.Event{At: l.at})
	}
}

func (l *load) submit(engine int, a arrival) {
	id := l.slot()
	h := &l.slots[id]
	copy(h[:], l.shared[a.family][:])
	for i := sharedBlocks; i < len(h); i++ {
		l.unique += 0x9e3779b97f4a7c15 // odd, so that 2^64 of them differ
		h[i] = l.unique
	}
	err := l.sim.SubmitAt(engine, a.at, simengine.Request{
		ID: id, PromptTokens: promptTokens, OutputTokens: outputTokens,
		Blocks: h[:promptBlocks:promptBlocks], OutputBlocks: h[promptBlocks:],
	})
	if err != nil {
		panic(err) // not with requests that are all alike
	}
}

func (l *load) slot() uint64 {
	if n := len(l.spare); n > 0 {
		id := l.spare[n-1]
		l.spare = l.spare[:n-1]
		return id
	}
	l.slots = append(l.slots, hashes{})
	return uint64(len(l.slots) - 1)
}

// Outputs counts. The id, and the hashes of it, are free for another when the
// request has ended.
func (l *load) Outputs(_ int, outputs []simengine.Output) {
	for i := range outputs {
		o := &outputs[i]
		if o.First {
			l.firsts++
			l.cached += o.CachedTokens
			l.ttft += o.Times.First - o.Times.Arrived
		}
		if o.Finished {
			l.ends++
			l.spare = append(l.spare, o.ID)
		}
	}
}
