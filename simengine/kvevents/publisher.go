// Package kvevents publishes what an engine's prefix cache holds as vLLM does:
// batches of BlockStored, BlockRemoved and AllBlocksCleared, one for each step
// that had some, over ZeroMQ.
//
// A PUB socket sends frames of topic, sequence number (8 bytes, big endian, from
// 0) and a batch in msgpack. A ROUTER socket answers who asks with a sequence
// number: the batches from there on that are still in the buffer, and an end
// marker.
//
// Only cmd/vllmsim links it.
package kvevents

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Publisher tells of one engine. Its methods may be called concurrently.
type Publisher struct {
	c       Config
	format  Format
	encoder *encoder // Run's
	now     func() time.Time

	pub    zmq4.Socket
	replay zmq4.Socket // nil without an endpoint

	queue  chan batch
	closed sync.Once

	mu   sync.Mutex
	seq  uint64  // of the next batch
	era  int     // how often it began anew
	sent []batch // the latest, at most BufferSteps
}

// batch is what a step did to the cache.
type batch struct {
	seq     uint64
	era     int
	at      time.Time
	events  []simengine.KVEvent
	payload []byte // once encoded
}

// Engine is what a Publisher tells of.
type Engine struct {
	BlockSize int // tokens

	// Rank is the data-parallel rank, which batches tell.
	Rank int

	// Offset is added to the ports of the endpoints; vLLM adds the rank.
	Offset int
}

// New opens the sockets; Run publishes and closes them. The config must be one
// that Publishes.
func New(c Config, format Format, engine Engine) (*Publisher, error) {
	if format < V09 || format > V024 {
		return nil, fmt.Errorf("publishing KV events: unknown format %d", format)
	}
	endpoint, err := offset(c.Endpoint, engine.Offset)
	if err != nil {
		return nil, fmt.Errorf("publishing KV events: %w", err)
	}
	replay, err := offset(c.ReplayEndpoint, engine.Offset)
	if err != nil {
		return nil, fmt.Errorf("publishing KV events: %w", err)
	}
	p := &Publisher{
		c: c, format: format, encoder: newEncoder(format, engine.BlockSize, engine.Rank), now: time.Now,
		pub: zmq4.NewPub(context.Background()), queue: make(chan batch, c.MaxQueueSize),
	}
	if err := p.open(endpoint, replay); err != nil {
		p.Close()
		return nil, fmt.Errorf("publishing KV events: %w", err)
	}
	return p, nil
}

func (p *Publisher) open(endpoint, replay string) error {
	if err := p.pub.SetOption(zmq4.OptionHWM, p.c.HWM); err != nil {
		return err
	}
	open := p.pub.Dial
	if binds(endpoint) {
		open = p.pub.Listen
	}
	if err := open(endpoint); err != nil {
		return err
	}
	if replay == "" {
		return nil
	}
	p.replay = zmq4.NewRouter(context.Background())
	return p.replay.Listen(replay)
}

// Close closes the sockets of a Publisher that doesn't Run. It is idempotent.
func (p *Publisher) Close() {
	p.closed.Do(func() {
		_ = p.pub.Close()
		if p.replay != nil {
			_ = p.replay.Close()
		}
	})
}

// Addr is where the PUB socket listens, nil if it doesn't.
func (p *Publisher) Addr() net.Addr { return p.pub.Addr() }

// ReplayAddr is where the ROUTER socket listens, nil if there is none.
func (p *Publisher) ReplayAddr() net.Addr {
	if p.replay == nil {
		return nil
	}
	return p.replay.Addr()
}

// Observe takes the events of a step; it fits live.Options.ObserveKV and doesn't
// wait.
func (p *Publisher) Observe(_ time.Duration, events []simengine.KVEvent) {
	p.mu.Lock()
	b := batch{seq: p.seq, era: p.era, at: p.now(), events: slices.Clone(events)}
	p.seq++
	p.mu.Unlock()
	select {
	case p.queue <- b:
	default: // subscribers see that a number is missing
	}
}

// Restart forgets all batches and counts from 0 again, as a new process does.
// Subscribers stay.
func (p *Publisher) Restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seq, p.sent = 0, nil
	p.era++
}

// Run publishes and answers replays until ctx ends, then closes the sockets. It
// may be called once.
func (p *Publisher) Run(ctx context.Context) {
	var group sync.WaitGroup
	if p.replay != nil {
		group.Go(p.serveReplays)
	}
	for ctx.Err() == nil {
		select {
		case b := <-p.queue:
			p.publish(b)
		case <-ctx.Done():
		}
	}
	p.Close()
	group.Wait()
}

func (p *Publisher) publish(b batch) {
	b.payload = p.encoder.batch(float64(b.at.UnixNano())/1e9, b.events)
	b.events = nil
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.era != p.era {
		return
	}
	if len(p.sent) == p.c.BufferSteps {
		p.sent = slices.Delete(p.sent, 0, 1)
	}
	p.sent = append(p.sent, b)
	// The socket queues and never waits; what it drops, a replay can give.
	_ = p.pub.SendMulti(zmq4.NewMsgFrom([]byte(p.c.Topic), number(b.seq), b.payload))
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// endOfReplay is the number that no batch has: -1.
const endOfReplay = 1<<64 - 1

// serveReplays answers until the socket is closed.
func (p *Publisher) serveReplays() {
	for {
		msg, err := p.replay.Recv()
		if err != nil {
			return
		}
		// Identity, delimiter, first number. vLLM ignores what isn't so.
		if len(msg.Frames) != 3 || len(msg.Frames[2]) == 0 || len(msg.Frames[2]) > 8 {
			continue
		}
		var from uint64
		for _, b := range msg.Frames[2] {
			from = from<<8 | uint64(b)
		}
		p.answer(msg.Frames[0], from)
	}
}

func (p *Publisher) answer(client []byte, from uint64) {
	p.mu.Lock()
	list := slices.Clone(p.sent)
	p.mu.Unlock()
	for _, b := range list {
		if b.seq >= from && p.send(client, []byte(p.c.Topic), b.seq, b.payload) != nil {
			return // the client left
		}
	}
	_ = p.send(client, nil, endOfReplay, nil)
}

func (p *Publisher) send(client, topic []byte, seq uint64, payload []byte) error {
	frames := [][]byte{client, {}}
	if p.format >= V024 {
		frames = append(frames, topic)
	}
	return p.replay.SendMulti(zmq4.NewMsgFrom(append(frames, number(seq), payload)...))
}
