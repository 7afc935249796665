package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/vmihailenco/msgpack/v5"
)

// replay asks for all batches until there are as many as wanted.
func replay(t *testing.T, endpoint string, want int) [][]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req := zmq4.NewReq(ctx)
	defer req.Close()
	if err := req.Dial(endpoint); err != nil {
		t.Fatal(err)
	}
	for {
		if err := req.Send(zmq4.NewMsg(make([]byte, 8))); err != nil {
			t.Fatal(err)
		}
		var batches [][]any
		for {
			msg, err := req.Recv()
			if err != nil {
				t.Fatalf("%d batches, want %d: %v", len(batches), want, err)
			}
			frames := msg.Frames[len(msg.Frames)-2:]
			if seq := binary.BigEndian.Uint64(frames[0]); seq == 1<<64-1 {
				break
			} else if seq != uint64(len(batches)) {
				t.Fatalf("batch %d comes after %d others", seq, len(batches))
			}
			var batch []any
			d := msgpack.NewDecoder(bytes.NewReader(frames[1]))
			d.UseLooseInterfaceDecoding(true)
			if err := d.Decode(&batch); err != nil {
				t.Fatal(err)
			}
			batches = append(batches, batch)
		}
		if len(batches) >= want {
			return batches
		}
	}
}

// Each engine tells of its own blocks at an endpoint of its own, in the form of
// the profile's version; a block is told of once, however often it is found.
func TestKVEventsOfDataParallelEngines(t *testing.T) {
	const name = "inproc://vllmsim-events"
	p := start(t, "--listen", "127.0.0.1:0", "--count", "1", "--data-parallel-size", "2", "--speed", "1000",
		"--kv-events-config", fmt.Sprintf(`{"enable_kv_cache_events":true,"endpoint":"%s","replay_endpoint":"%s-replay"}`, name, name))
	url := p.listening(t, "model=llama3.1-8b preset=llama3.1-8b-h100")
	prompt := strings.TrimSuffix(strings.Repeat("7,", 40), ",")
	for range 4 { // ties rotate: each engine gets two
		if status, text := post(t, url, `{"prompt":[`+prompt+`],"max_tokens":1}`); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
	}
	for rank, endpoint := range []string{name + "-replay", name + "-replay_dp1"} {
		batches := replay(t, endpoint, 1)
		events := batches[0][1].([]any)
		if len(batches) != 1 || len(events) != 1 || fmt.Sprint(batches[0][2]) != fmt.Sprint(rank) {
			t.Fatalf("rank %d told %v", rank, batches)
		}
		event := events[0].(map[string]any)
		tokens, _ := event["token_ids"].([]any)
		if event["type"] != "BlockStored" || len(tokens) != 32 || slices.ContainsFunc(tokens, func(id any) bool { return fmt.Sprint(id) != "7" }) {
			t.Errorf("rank %d told %v", rank, event)
		}
	}
	p.stop()
	if err := <-p.ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestKVEventsThatCannotBe(t *testing.T) {
	for want, args := range map[string][]string{
		`unknown field "enable"`:        {"--kv-events-config", `{"enable":true}`},
		"vllm-0.8 has no KV events":     {"--kv-events-config", `{"enable_kv_cache_events":true}`, "--profile", "vllm-0.8"},
		`publisher is "kafka"`:          {"--kv-events-config", `{"publisher":"kafka"}`},
		"want tcp://, ipc:// or inproc": {"--kv-events-config", `{"endpoint":"5557"}`},
	} {
		if _, _, err := parsed(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
	o, c, err := parsed(t, "--kv-events-config", `{"enable_kv_cache_events":false}`)
	if err != nil || c.KVEvents || o.events.Publishes() {
		t.Errorf("switched off: %+v, %v", o.events, err)
	}
	// Two servers of one ipc endpoint: the second can't have it.
	p := start(t, "--listen", "127.0.0.1:0", "--count", "2", "--kv-events-config", `{"enable_kv_cache_events":true,"endpoint":"ipc://`+t.TempDir()+`/s"}`)
	if _, err := p.lines.ReadString('\n'); err == nil {
		t.Error("two servers share an endpoint")
	}
	if err := <-p.ended; err == nil || !strings.Contains(err.Error(), "several engines") {
		t.Errorf("ended with %v", err)
	}
}
