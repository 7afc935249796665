package kvevents

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
)

// message is a line of a recording.
type message struct {
	Topic   string
	Seq     uint64
	Payload [3]json.RawMessage
	Frames  []string
}

// told is an event of a recording, of either form.
type told struct {
	Type        string
	Hashes      []uint64 `json:"block_hashes"`
	Parent      *uint64  `json:"parent_block_hash"`
	Tokens      []uint64 `json:"token_ids"`
	BlockSize   int      `json:"block_size"`
	ExtraKeys   [][]any  `json:"extra_keys"`
	AdapterID   *int     `json:"lora_id"`
	AdapterName *string  `json:"lora_name"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *told) UnmarshalJSON(b []byte) error {
	type plain told
	if b[0] == '{' {
		return json.Unmarshal(b, (*plain)(e))
	}
	var list []json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	var medium any
	for i, to := range []any{&e.Type, &e.Hashes, &e.Parent, &e.Tokens, &e.BlockSize, &e.AdapterID, &medium, &e.AdapterName, &e.ExtraKeys} {
		if i == 2 && e.Type != "BlockStored" {
			break
		}
		if i < len(list) {
			if err := json.Unmarshal(list[i], to); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordings are the files of messages of versions of vLLM.
func recordings(t *testing.T) map[string][]message {
	t.Helper()
	files, err := filepath.Glob("../../testdata/vllm/*/events/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no events of vLLM are recorded in testdata/vllm")
	}
	list := map[string][]message{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var m message
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			list[file] = append(list[file], m)
		}
	}
	return list
}

// formatOf is the format of a file's version.
func formatOf(file string) Format {
	switch version := filepath.Base(filepath.Dir(filepath.Dir(file))); {
	case strings.HasPrefix(version, "0.9."):
		return V09
	case strings.HasPrefix(version, "0.10."), strings.HasPrefix(version, "0.11."):
		return V011
	case strings.HasPrefix(version, "0.19."):
		return V019
	}
	return V024
}

func (m message) events(t *testing.T) []told {
	t.Helper()
	var list []told
	if err := json.Unmarshal(m.Payload[1], &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// spoken is a request as a recorded event tells of it.
type spoken struct{ event told }

func (s spoken) BlockTokens(block int) []uint64 {
	return s.event.Tokens[block*s.event.BlockSize : (block+1)*s.event.BlockSize]
}

func (s spoken) Adapter() (int, string) { return 0, "" }

func (s spoken) Salt() string {
	if len(s.event.ExtraKeys) > 0 && len(s.event.ExtraKeys[0]) > 0 {
		return s.event.ExtraKeys[0][0].(string)
	}
	return ""
}

// engineEvents are what an engine would have said for a message. Blocks are
// counted from 0 where a chain begins, and from 1 elsewhere.
func engineEvents(list []told) (events []simengine.KVEvent, blockSize int) {
	blockSize = 1
	for request, e := range list {
		switch e.Type {
		case "AllBlocksCleared":
			events = append(events, simengine.KVEvent{Kind: simengine.AllBlocksCleared})
		case "BlockRemoved":
			events = append(events, simengine.KVEvent{Kind: simengine.BlockRemoved, Hash: e.Hashes[0]})
		case "BlockStored":
			blockSize = e.BlockSize
			first, parent := 0, uint64(0)
			if e.Parent != nil {
				first, parent = 1, *e.Parent
				e.Tokens = append(make([]uint64, e.BlockSize), e.Tokens...)
			}
			for i, hash := range e.Hashes {
				events = append(events, simengine.KVEvent{
					Kind: simengine.BlockStored, Hash: hash, Request: uint64(request), Source: spoken{e}, Index: first + i, Parent: parent,
				})
				parent = hash
			}
		}
	}
	return events, blockSize
}

// What vLLM told is encoded to the very bytes that it sent.
func TestBatchesAreThoseOfVLLM(t *testing.T) {
	frames := 0
	for file, messages := range recordings(t) {
		for _, m := range messages {
			events, blockSize := engineEvents(m.events(t))
			e := newEncoder(formatOf(file), blockSize, 0)
			if len(m.Frames) == 0 {
				want := fmt.Sprintf("%s\n%s\n%s\n", m.Payload[0], m.Payload[1], m.Payload[2])
				if got := readable(t, e.batch(0, events)); canonical(t, string(got)) != canonical(t, linesOf(t, want)) {
					t.Errorf("%s, message %d is\n%s\nwant\n%s", file, m.Seq, got, want)
				}
				continue
			}
			frames++
			payload, err := hex.DecodeString(m.Frames[2])
			if err != nil {
				t.Fatal(err)
			}
			// The time is the first thing in the array.
			at := math.Float64frombits(binary.BigEndian.Uint64(payload[2:]))
			if got := e.batch(at, events); !bytes.Equal(got, payload) {
				t.Errorf("%s, message %d is\n%x\nwant\n%x", file, m.Seq, got, payload)
			}
			if m.Frames[0] != hex.EncodeToString([]byte(m.Topic)) || m.Frames[1] != hex.EncodeToString(number(m.Seq)) {
				t.Errorf("%s, message %d has the frames %v", file, m.Seq, m.Frames[:2])
			}
		}
	}
	if frames == 0 {
		t.Error("no message was recorded as it came")
	}
}

// linesOf brings a batch's parts into the form of readable.
func linesOf(t *testing.T, batch string) string {
	t.Helper()
	parts := strings.Split(batch, "\n")
	var events []json.RawMessage
	if err := json.Unmarshal([]byte(parts[1]), &events); err != nil {
		t.Fatal(err)
	}
	text := parts[0] + "\n"
	for _, e := range events {
		text += string(e) + "\n"
	}
	return text + parts[2] + "\n"
}

// canonical sorts the members of objects.
func canonical(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(text) {
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		sorted, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", sorted)
	}
	return b.String()
}

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

// shape is a sequence of batches without what differs between a simulator and
// a model: hashes become numbers in the order in which they are first told.
func shape(t *testing.T, payloads [][]told) string {
	t.Helper()
	numbers := map[uint64]int{}
	name := func(hash uint64) int {
		if _, ok := numbers[hash]; !ok {
			numbers[hash] = len(numbers) + 1
		}
		return numbers[hash]
	}
	var b strings.Builder
	for _, batch := range payloads {
		for _, e := range batch {
			fmt.Fprint(&b, e.Type)
			if e.Parent != nil {
				fmt.Fprintf(&b, " after %d", name(*e.Parent))
			}
			for _, hash := range e.Hashes {
				fmt.Fprintf(&b, " %d", name(hash))
			}
			fmt.Fprintf(&b, " %v; ", e.ExtraKeys)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// salted is a request of a story.
type salted struct{ salt string }

func (s salted) BlockTokens(int) []uint64 { return nil }
func (s salted) Adapter() (int, string)   { return 0, "" }
func (s salted) Salt() string             { return s.salt }

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

// decode is what a subscriber makes of a batch.
func decode(t *testing.T, payload []byte) []told {
	t.Helper()
	var v []any
	d := msgpack.NewDecoder(bytes.NewReader(payload))
	d.UseLooseInterfaceDecoding(true)
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v[1])
	if err != nil {
		t.Fatal(err)
	}
	var list []told
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}
