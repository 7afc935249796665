package vllmapi

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
)

// Hashed as the engine does, the tokens that events tell give the hashes that
// events tell, over prompt and reply, for every adapter and salt.
func TestEventsTellTheTokensOfTheirBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := benchEngine
		c.KVEvents = true
		e, err := simengine.New(c)
		if err != nil {
			t.Fatal(err)
		}
		var events []simengine.KVEvent
		d := live.New(e, live.Options{ObserveKV: func(_ time.Duration, list []simengine.KVEvent) { events = append(events, list...) }})
		b := newBench(t, benchEngine, 1, func(config *Config) {
			config.Driver = d
			config.ServedModels = []string{"sql", "poems"}
		})
		done := make(chan struct{})
		go func() { defer close(done); _ = d.Run(t.Context()) }()
		t.Cleanup(func() { <-done })
		b.post(textPath, `{"prompt":`+idPrompt(1, 40)+`,"max_tokens":30,"ignore_eos":true}`).whole(t)
		b.post(textPath, `{"model":"poems","cache_salt":"pepper","prompt":`+idPrompt(1, 16)+`,"max_tokens":20,"ignore_eos":true}`).whole(t)
		synctest.Wait()
		parents := map[uint64]bool{}
		told := map[string]int{}
		for _, ev := range events {
			k, ok := ev.Source.(*kvSource)
			if !ok || ev.Kind != simengine.BlockStored {
				t.Fatalf("event %+v", ev)
			}
			model := k.adapter
			if model == "" {
				model = "m"
			}
			var tokens []token
			for i := range ev.Index + 1 {
				for _, id := range k.BlockTokens(i) {
					x, ok := tokenOf(id)
					if !ok || id>>32 != 0 {
						t.Errorf("events tell of token %d", id)
					}
					tokens = append(tokens, x)
				}
			}
			hashes := chain(cacheSeed(model, k.Salt()), tokens, e.Config().BlockSize)
			if len(hashes) != ev.Index+1 || hashes[ev.Index] != ev.Hash || ev.Index > 0 && !parents[ev.Parent] {
				t.Errorf("block %d of %q has the hash %x, events tell %x after %x", ev.Index, model, hashes, ev.Hash, ev.Parent)
			}
			parents[ev.Hash] = true
			id, name := k.Adapter()
			told[fmt.Sprintf("%d,%s,%s", id, name, k.Salt())]++
		}
		if len(events) != 4+2 || told["0,,"] != 4 || told["2,poems,pepper"] != 2 {
			t.Errorf("told of %v in %d events", told, len(events))
		}
		if rest := (&kvSource{prompt: []token{1, 2}, output: &reply{count: 1, tail: 3}, blockSize: 2}).BlockTokens(1); !slices.Equal(rest, []uint64{3}) {
			t.Errorf("a block that isn't full has %v", rest)
		}
	})
}
