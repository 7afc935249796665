package simengine

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// What a step stored is told at its end, in the order of the request's chain,
// and each with the one before it.
func TestKVEventsOfARequest(t *testing.T) {
	e := newEngine(t, Config{KVEvents: true, Blocks: 6, MaxNumBatchedTokens: 40})
	c := chain(1, 4)
	submit(t, e, 0, Request{ID: 7, PromptTokens: 50, Blocks: c[:3], OutputTokens: 15, OutputBlocks: c[3:]})
	var got [][]KVEvent
	for {
		if _, busy := e.Next(); !busy {
			break
		}
		step(t, e)
		if events := e.KVEvents(); len(events) > 0 {
			got = append(got, slices.Clone(events))
		}
	}
	stored := func(i int, parent uint64) KVEvent {
		return KVEvent{Kind: BlockStored, Hash: c[i], Request: 7, Index: i, Parent: parent}
	}
	want := [][]KVEvent{{stored(0, 0), stored(1, c[0])}, {stored(2, c[1])}, {stored(3, c[2])}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Fatalf("events by step = %v, want %v", got, want)
	}

	// Of the five blocks one never had a hash; a prompt of four takes three.
	submit(t, e, time.Second, prompt(8, 2, 33, 31))
	step(t, e)
	step(t, e)
	if e.ResetPrefixCache() {
		t.Error("ResetPrefixCache() = true with a request in the batch")
	}
	events := slices.Clone(e.KVEvents())
	drain(t, e)
	if want := (KVEvent{Kind: BlockRemoved, Hash: c[3]}); len(events) < 3 || events[0] != want {
		t.Errorf("events = %v, want %v first: the tail goes first", events, want)
	}
	if !e.ResetPrefixCache() {
		t.Fatal("ResetPrefixCache() = false on an idle engine")
	}
	submit(t, e, 2*time.Second, prompt(9, 3, 5, 1))
	step(t, e)
	step(t, e)
	if want := []KVEvent{{Kind: AllBlocksCleared}}; !slices.Equal(e.KVEvents(), want) {
		t.Errorf("events after the reset = %v, want %v", e.KVEvents(), want)
	}
}

func TestKVEventsAreOffByDefault(t *testing.T) {
	e := newEngine(t, Config{})
	submit(t, e, 0, prompt(1, 1, 64, 1))
	step(t, e)
	step(t, e)
	if got := e.KVEvents(); len(got) != 0 {
		t.Errorf("KVEvents() = %v, want none", got)
	}
}

// Who follows the events knows what the cache holds: any prompt's hit is what
// the events say.
func TestKVEventsTellTheWholeCache(t *testing.T) {
	for seed := range uint64(20) {
		tr := randomTraffic(rand.New(rand.NewPCG(seed, 5)))
		tr.config.KVEvents = true
		e := newEngine(t, tr.config)
		known := make(map[uint64]int)
		events := tr.events
		for {
			at, busy := e.Next()
			for len(events) > 0 && (!busy || events[0].at <= at) {
				if ev := events[0]; ev.submit != nil {
					submit(t, e, ev.at, *ev.submit)
				} else {
					e.Cancel(ev.at, ev.cancel)
				}
				events = events[1:]
				at, busy = e.Next()
			}
			if !busy {
				break
			}
			e.Step(at)
			for _, ev := range e.KVEvents() {
				switch ev.Kind {
				case BlockStored:
					known[ev.Hash]++
				case BlockRemoved:
					if known[ev.Hash]--; known[ev.Hash] < 0 {
						t.Fatalf("seed %d: a block was removed that was not stored", seed)
					}
				}
			}
		}
		size := e.Config().BlockSize
		for text := range 4 {
			c := chain(text, e.Config().MaxModelLen/size)
			want := 0
			for want < len(c) && known[c[want]] > 0 {
				want++
			}
			if found, _ := e.pool.Match(c, nil); len(found) != want {
				t.Fatalf("seed %d: the cache has %d blocks of text %d, by its events %d", seed, len(found), text, want)
			}
		}
	}
}
