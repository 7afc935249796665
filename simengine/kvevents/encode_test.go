package kvevents

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

var update = flag.Bool("update", false, "write the batches in testdata anew; read the difference before it is committed")

// text is a request whose i-th block holds the tokens 10i, 10i+1 and so on.
type text struct {
	adapter, salt string
}

func (t text) BlockTokens(block int) []uint64 {
	return []uint64{uint64(10 * block), uint64(10*block + 1), uint64(10*block + 2), uint64(10*block + 3)}
}

func (t text) Adapter() (int, string) {
	if t.adapter == "" {
		return 0, ""
	}
	return 7, t.adapter
}

func (t text) Salt() string { return t.salt }

// step is what an eventful step does.
func step() []simengine.KVEvent {
	plain, adapted := text{}, text{"sql", "pepper"}
	return []simengine.KVEvent{
		{Kind: simengine.BlockRemoved, Hash: 1<<64 - 1},
		{Kind: simengine.BlockStored, Hash: 101, Request: 1, Source: plain},
		{Kind: simengine.BlockStored, Hash: 102, Request: 1, Source: plain, Index: 1, Parent: 101},
		{Kind: simengine.BlockStored, Hash: 201, Request: 2, Source: adapted},
		{Kind: simengine.BlockStored, Hash: 202, Request: 2, Source: adapted, Index: 1, Parent: 201},
		{Kind: simengine.BlockStored, Hash: 105, Request: 1, Source: plain, Index: 4, Parent: 104},
		{Kind: simengine.BlockRemoved, Hash: 7},
		{Kind: simengine.BlockRemoved, Hash: 8},
		{Kind: simengine.AllBlocksCleared},
	}
}

// readable is a message as JSON, one event a line.
func readable(t *testing.T, payload []byte) []byte {
	t.Helper()
	var v []any
	d := msgpack.NewDecoder(bytes.NewReader(payload))
	d.UseLooseInterfaceDecoding(true)
	if err := d.Decode(&v); err != nil || d.Buffered() == nil || len(v) != 3 {
		t.Fatalf("decoding %x: %v, %v", payload, v, err)
	}
	if _, err := d.DecodeInterface(); err == nil {
		t.Fatalf("something follows the batch in %x", payload)
	}
	var b bytes.Buffer
	for i, part := range v {
		lines := []any{part}
		if i == 1 {
			lines = part.([]any)
		}
		for _, line := range lines {
			text, err := json.Marshal(line)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s\n", text)
		}
	}
	return b.Bytes()
}

// The batches are goldens: time, then an event on each line, then the rank.
func TestBatches(t *testing.T) {
	for format, name := range map[Format]string{V09: "0.9", V011: "0.11", V019: "0.19", V024: "0.24"} {
		e := newEncoder(format, 4, 3)
		e.batch(1, step()) // what was written before leaves no trace
		got := readable(t, e.batch(1_790_000_000.25, step()))
		file := filepath.Join("testdata", name+".jsonl")
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("the batch is not that of %s:\n%s", file, got)
		}
	}
}

// Encoded, small numbers take a byte, as msgspec has it.
func TestNumbersAreShort(t *testing.T) {
	e := newEncoder(V09, 4, 0)
	got := e.batch(0, []simengine.KVEvent{{Kind: simengine.BlockRemoved, Hash: 5}})
	want := append([]byte{0x93, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0, 0x91, 0x92, 0xac}, "BlockRemoved\x91\x05\x00"...)
	if !bytes.Equal(got, want) {
		t.Errorf("batch is %x, want %x", got, want)
	}
}
