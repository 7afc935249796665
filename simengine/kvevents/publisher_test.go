package kvevents

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// patience bounds what a test waits for on a machine that is busy.
const patience = time.Minute

// running is a publisher that runs until the test ends.
func running(t *testing.T, c Config, format Format, e Engine) *Publisher {
	t.Helper()
	p, err := New(c, format, e)
	if err != nil {
		t.Fatal(err)
	}
	p.now = func() time.Time { return time.Unix(1_790_000_000, 0) }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return p
}

// subscribe returns a socket that p knows of.
func subscribe(t *testing.T, p *Publisher, endpoint, topic string) zmq4.Socket {
	t.Helper()
	sub := zmq4.NewSub(t.Context())
	t.Cleanup(func() { _ = sub.Close() })
	if err := sub.Dial(endpoint); err != nil {
		t.Fatal(err)
	}
	if err := sub.SetOption(zmq4.OptionSubscribe, topic); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); len(p.pub.(zmq4.Topics).Topics()) == 0; runtime.Gosched() {
		if time.Since(begin) > patience {
			t.Fatal("nobody subscribed")
		}
	}
	return sub
}

func receive(t *testing.T, s zmq4.Socket) [][]byte {
	t.Helper()
	got := make(chan zmq4.Msg, 1)
	go func() {
		msg, err := s.Recv()
		if err == nil {
			got <- msg
		}
		close(got)
	}()
	select {
	case msg, ok := <-got:
		if ok {
			return msg.Frames
		}
	case <-time.After(patience):
	}
	t.Fatal("nothing came")
	return nil
}

func clear(n int) []simengine.KVEvent {
	var list []simengine.KVEvent
	for range n {
		list = append(list, simengine.KVEvent{Kind: simengine.AllBlocksCleared})
	}
	return list
}

func config(endpoint, replay string) Config {
	return Config{Enable: true, Publisher: "zmq", Endpoint: endpoint, ReplayEndpoint: replay, BufferSteps: 3, HWM: 100, MaxQueueSize: 100, Topic: "kv@m"}
}

// Over each transport: topic, number from 0 on, batch.
func TestSubscribersGetEveryBatch(t *testing.T) {
	for name, endpoint := range map[string]string{
		"inproc": "inproc://subscribers", "ipc": "ipc://" + filepath.Join(t.TempDir(), "s"), "tcp": "tcp://127.0.0.1:*",
	} {
		t.Run(name, func(t *testing.T) {
			p := running(t, config(endpoint, ""), V024, Engine{BlockSize: 4, Rank: 3})
			if name == "tcp" {
				endpoint = "tcp://" + p.Addr().String()
			}
			sub := subscribe(t, p, endpoint, "kv@")
			var events []string
			for i := range 3 {
				p.Observe(0, clear(i+1))
				frames := receive(t, sub)
				if len(frames) != 3 || string(frames[0]) != "kv@m" || binary.BigEndian.Uint64(frames[1]) != uint64(i) || len(frames[1]) != 8 {
					t.Fatalf("frames are %q", frames)
				}
				events = append(events, string(readable(t, frames[2])))
			}
			if want := "1790000000\n{\"type\":\"AllBlocksCleared\"}\n{\"type\":\"AllBlocksCleared\"}\n3\n"; events[1] != want {
				t.Errorf("the second batch is %q, want %q", events[1], want)
			}
		})
	}
}

// replayed asks for the batches from a number on, and returns their numbers and
// the frames of the last answer.
func replayed(t *testing.T, endpoint string, from []byte) (numbers []uint64, last [][]byte) {
	t.Helper()
	dealer := zmq4.NewDealer(t.Context())
	defer dealer.Close()
	if err := dealer.Dial(endpoint); err != nil {
		t.Fatal(err)
	}
	// What makes no sense gets no answer and disturbs nobody.
	for _, frames := range [][][]byte{{{}}, {{}, {}}, {{}, make([]byte, 9)}, {{}, from, from}, {{}, from}} {
		if err := dealer.SendMulti(zmq4.NewMsgFrom(frames...)); err != nil {
			t.Fatal(err)
		}
	}
	for {
		last = receive(t, dealer)
		seq := last[len(last)-2]
		if bytes.Equal(seq, bytes.Repeat([]byte{0xff}, 8)) {
			return numbers, last
		}
		numbers = append(numbers, binary.BigEndian.Uint64(seq))
	}
}

// Who missed something asks for it; the buffer goes back so far and no further.
func TestReplays(t *testing.T) {
	for _, c := range []struct {
		format Format
		frames int // of an answer, with the delimiter
	}{{V019, 3}, {V024, 4}} {
		endpoint := fmt.Sprintf("inproc://replays-%d", c.format)
		p := running(t, config(endpoint+"-pub", endpoint), c.format, Engine{BlockSize: 4})
		sub := subscribe(t, p, endpoint+"-pub", "")
		if numbers, _ := replayed(t, endpoint, number(0)); len(numbers) != 0 {
			t.Errorf("before the first batch: %v", numbers)
		}
		for range 5 {
			p.Observe(0, clear(1))
			receive(t, sub)
		}
		for _, ask := range []struct {
			from []byte
			want string
		}{{number(0), "[2 3 4]"}, {number(3), "[3 4]"}, {number(5), "[]"}, {[]byte{4}, "[4]"}} {
			numbers, last := replayed(t, endpoint, ask.from)
			if fmt.Sprint(numbers) != ask.want || len(last) != c.frames || len(last[0]) != 0 || len(last[len(last)-1]) != 0 {
				t.Errorf("format %d from %x: %v and at last %q, want %s", c.format, ask.from, numbers, last, ask.want)
			}
		}
	}
}

// A publisher that can't keep up drops batches but not their numbers, and the
// engine doesn't wait for it.
func TestAFullQueueCostsNumbers(t *testing.T) {
	c := config("inproc://full", "")
	c.MaxQueueSize = 2
	p, err := New(c, V024, Engine{BlockSize: 4})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		p.Observe(0, clear(1)) // nobody reads the queue yet
	}
	sub := subscribe(t, p, "inproc://full", "")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	defer func() { cancel(); <-done }()
	for _, want := range []uint64{0, 1} {
		if got := binary.BigEndian.Uint64(receive(t, sub)[1]); got != want {
			t.Errorf("batch %d, want %d", got, want)
		}
	}
	p.Observe(0, clear(1))
	if got := binary.BigEndian.Uint64(receive(t, sub)[1]); got != 5 {
		t.Errorf("batch %d after the gap, want 5", got)
	}
}

// After a restart numbers begin at 0, and what was before can't be had.
func TestARestartedPublisherKnowsNothing(t *testing.T) {
	p := running(t, config("inproc://restart", "inproc://restart-replay"), V024, Engine{BlockSize: 4})
	sub := subscribe(t, p, "inproc://restart", "")
	for range 2 {
		p.Observe(0, clear(1))
		receive(t, sub)
	}
	p.Restart()
	if numbers, _ := replayed(t, "inproc://restart-replay", number(0)); len(numbers) != 0 {
		t.Errorf("after the restart %v can be had", numbers)
	}
	p.Observe(0, clear(1))
	if got := binary.BigEndian.Uint64(receive(t, sub)[1]); got != 0 {
		t.Errorf("the first batch after the restart is %d", got)
	}
}

func TestPublishersThatCannotOpen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for name, c := range map[string]Config{
		"replay port taken": config("inproc://cannot", "tcp://127.0.0.1:"+port),
		"ipc and ranks":     config("ipc:///nowhere/s", ""),
	} {
		if _, err := New(c, V024, Engine{BlockSize: 4, Offset: map[bool]int{true: 1}[name == "ipc and ranks"]}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := New(config("inproc://format", ""), 0, Engine{BlockSize: 4}); err == nil {
		t.Error("a format that there isn't")
	}
}
