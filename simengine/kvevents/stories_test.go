package kvevents

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
)

// story is a sequence of completions, one after the other.
type story struct {
	Name   string
	Blocks int
	Steps  []struct {
		Prompt []struct {
			First, Count uint64
			Reply        int
		}
		Salt       string `json:"cache_salt"`
		Completion int    `json:"completion_tokens"`
		N          int
	}
}

// salted is a request of a story.
type salted struct{ salt string }

func (s salted) BlockTokens(int) []uint64 { return nil }

func (s salted) Adapter() (int, string) { return 0, "" }

func (s salted) Salt() string { return s.salt }

// What vLLM told during a story, the simulator tells too, batch by batch. Before
// 0.24 vLLM put blocks without a hash at the end of its free list, so that it
// evicted others first; the engine is newer than that.
func TestStoriesAreToldAsByVLLM(t *testing.T) {
	for file, messages := range recordings(t) {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(file)), "cache", strings.TrimSuffix(filepath.Base(file), ".jsonl")+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var s story
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		if s.Name == "choices" || formatOf(file) < V024 {
			continue // several choices run at once, and when each comes is up to the server
		}
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(file)))+"/"+s.Name, func(t *testing.T) {
			var want [][]told
			for _, m := range messages {
				want = append(want, m.events(t))
			}
			synctest.Test(t, func(t *testing.T) {
				if got, want := shape(t, s.play(t, formatOf(file))), shape(t, want); got != want {
					t.Errorf("the simulator tells\n%s\nvLLM\n%s", got, want)
				}
			})
		})
	}
}

// play runs a story and returns what a subscriber would have got.
func (s *story) play(t *testing.T, format Format) [][]told {
	t.Helper()
	const blockSize = 32
	engine, err := simengine.New(simengine.Config{
		BlockSize: blockSize, Blocks: s.Blocks, MaxModelLen: 896, MaxNumSeqs: 4, MaxNumBatchedTokens: 512, KVEvents: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	e := newEncoder(format, blockSize, 0)
	var batches [][]told
	d := live.New(engine, live.Options{ObserveKV: func(_ time.Duration, events []simengine.KVEvent) {
		batches = append(batches, decode(t, e.batch(0, events)))
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Run(ctx) }()
	synctest.Wait()
	d.ResetPrefixCache()
	replies := map[int][]uint64{}
	for i, step := range s.Steps {
		var tokens []uint64
		for _, run := range step.Prompt {
			tokens = append(tokens, replies[run.Reply]...)
			for j := range run.Count {
				tokens = append(tokens, run.First+j)
			}
		}
		prompt := len(tokens)
		for j := range step.Completion {
			replies[i+1] = append(replies[i+1], uint64(1_000_000+1000*i+j))
		}
		tokens = append(tokens, replies[i+1]...)
		hashes := hashes(step.Salt, tokens, blockSize)
		_, err := d.Generate(ctx, simengine.Request{
			PromptTokens: prompt, Blocks: hashes[:prompt/blockSize], OutputTokens: step.Completion, OutputBlocks: hashes[prompt/blockSize:],
			Source: salted{step.Salt},
		})
		if err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
	}
	cancel()
	<-done
	return batches
}

// hashes chains the full blocks of a text.
func hashes(salt string, tokens []uint64, blockSize int) []uint64 {
	var list []uint64
	h := xxhash.New()
	_, _ = h.WriteString(salt)
	for i := 0; i+blockSize <= len(tokens); i += blockSize {
		for _, token := range tokens[i : i+blockSize] {
			_, _ = h.Write(number(token))
		}
		list = append(list, h.Sum64())
	}
	return list
}
