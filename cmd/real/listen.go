package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

//go:embed python/events.py
var eventsScript string

const (
	// settle is how long no message comes before a sequence's are all there.
	settle = 500 * time.Millisecond
	// maxFrames bounds how many messages of a sequence keep their raw frames.
	maxFrames = 2
)

// listener hears a server's KV events.
type listener struct{ *process.Child }

// listen subscribes to an endpoint and waits until messages can't be missed.
func (r *recorder) listen(ctx context.Context, dir, endpoint string) (*listener, error) {
	c, err := process.Start(process.Spec{Path: r.python(), Dir: dir, Args: []string{"-c", eventsScript, endpoint}, StartLimit: time.Minute})
	if err != nil {
		return nil, err
	}
	l := &listener{c}
	err = c.Await(ctx, func() bool {
		select {
		case line := <-c.Lines:
			return line == "ready"
		default:
			return false
		}
	})
	if err != nil {
		c.Stop()
		return nil, err
	}
	// A subscription takes effect a moment after it is asked for.
	time.Sleep(settle)
	return l, nil
}

// drain forgets what came so far.
func (l *listener) drain() { l.lines() }

// take returns what came since drain, one message a line: the time of each is
// left out, and of most the raw frames.
func (l *listener) take() []byte {
	var b bytes.Buffer
	for i, line := range l.lines() {
		var m struct {
			Topic   string            `json:"topic"`
			Seq     int               `json:"seq"`
			Payload []json.RawMessage `json:"payload"`
			Frames  []string          `json:"frames,omitempty"`
		}
		if json.Unmarshal([]byte(line), &m) != nil || len(m.Payload) < 2 {
			b.WriteString(line + "\n")
			continue
		}
		m.Payload[0] = json.RawMessage("0")
		if i >= maxFrames {
			m.Frames = nil
		}
		b.Write(jsonLines([]any{m}))
	}
	return b.Bytes()
}

func (l *listener) lines() []string {
	var all []string
	for {
		select {
		case line, ok := <-l.Lines:
			if !ok {
				return all
			}
			all = append(all, line)
		case <-time.After(settle):
			return all
		}
	}
}
