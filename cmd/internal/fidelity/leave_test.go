package fidelity

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// moment is what vLLM's gauges said at one point of the story of leaving clients.
type moment struct {
	After    string             `json:"after"`
	Running  int                `json:"running"`
	Waiting  int                `json:"waiting"`
	KVInUse  bool               `json:"kv_in_use"`
	Finished map[string]float64 `json:"finished"`
	Hits     uint64             `json:"prefix_cache_hits"`
	Queries  uint64             `json:"prefix_cache_queries"`
}

// Clients leave while they are queued, in decode and in prefill. After each turn
// of the story the engine must show what vLLM showed.
func TestGaugesFollowClientsThatLeaveAsVLLMs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recorded("*"), "leave", "*.jsonl"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d recordings: %v", len(files), err)
	}
	for _, file := range files {
		version := filepath.Base(filepath.Dir(filepath.Dir(file)))
		t.Run(version+" "+filepath.Base(file), func(t *testing.T) {
			// The second story on a server finds blocks that the first one left.
			followLeaving(t, readStory(t, file), filepath.Base(file) == "streamed.jsonl")
		})
	}
}

func followLeaving(t *testing.T, story []moment, cold bool) {
	// The recorded server had a budget of 16 tokens a step, which the simulator
	// refuses: half a block. It matters to no gauge.
	engine, err := simengine.New(simengine.Config{BlockSize: blockSize, Blocks: 129, MaxModelLen: 2048, MaxNumSeqs: 2, MaxNumBatchedTokens: blockSize})
	if err != nil {
		t.Fatal(err)
	}
	const long, short = 1400, 20
	var now time.Duration
	come := func(id uint64, prompt, output int) {
		blocks := make([]uint64, prompt/blockSize) // of prompts that begin alike
		for i := range blocks {
			blocks[i] = uint64(i) + 1
		}
		if err := engine.Submit(now, simengine.Request{ID: id, PromptTokens: prompt, OutputTokens: output, Blocks: blocks}); err != nil {
			t.Fatal(err)
		}
	}
	const a, b, c, d, e = 1, 2, 3, 4, 5
	turns := map[string]func(){
		"start":               func() {},
		"a decodes":           func() { come(a, short, long) },
		"b decodes":           func() { come(b, short+1, long) },
		"c waits":             func() { come(c, short+2, long) },
		"d waits":             func() { come(d, short+3, long) },
		"c left while queued": func() { engine.Cancel(now, c) },
		"a left in decode, d takes its place": func() {
			engine.Cancel(now, a)
		},
		"b left in decode":  func() { engine.Cancel(now, b) },
		"d left in decode":  func() { engine.Cancel(now, d) },
		"e is in prefill":   func() { come(e, long, short) },
		"e left in prefill": func() { engine.Cancel(now, e) },
	}
	for _, m := range story {
		turn := turns[m.After]
		if turn == nil {
			t.Fatalf("the story has an unknown turn %q", m.After)
		}
		turn()
		for range 8 { // steps enough for a short prompt, not for a long one
			next, ok := engine.Next()
			if !ok {
				break
			}
			now = max(now, next)
			engine.Step(now)
		}
		s := engine.Stats()
		got := moment{m.After, s.Running, s.Waiting, s.KVUsage > 0, m.Finished, s.PrefixHits, s.PrefixQueries}
		if got.Running != m.Running || got.Waiting != m.Waiting || got.KVInUse != m.KVInUse || cold && got.Hits != m.Hits || got.Queries != m.Queries {
			t.Errorf("%s: %+v, vLLM showed %+v", m.After, got, m)
		}
		if finished := float64(s.FinishedStop + s.FinishedLength); finished != m.Finished["stop"]+m.Finished["length"] {
			t.Errorf("%s: %v finished, vLLM showed %v", m.After, finished, m.Finished)
		}
		if m.Finished["abort"] != 0 {
			t.Errorf("%s: vLLM counts clients that left: %v", m.After, m.Finished)
		}
	}
}

func readStory(t *testing.T, file string) []moment {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var story []moment
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var m moment
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		story = append(story, m)
	}
	if len(story) == 0 {
		t.Fatalf("%s tells nothing", file)
	}
	return story
}
