package kvevents

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

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
