package vllmapi

import (
	"context"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
)

// outputs brings the streams of a request together.
type outputs struct {
	one   *live.Stream // if there is only one
	joint *live.Joint  // else
	left  func()       // is told at the end
}

type output struct {
	simengine.Output
	index int
	more  bool // another one is there
	err   error
}

func merge(streams []*live.Stream, left func()) *outputs {
	if len(streams) == 1 {
		return &outputs{one: streams[0], left: left}
	}
	return &outputs{joint: live.Join(streams...), left: left}
}

// next waits for output of any stream, of several in the order of the engine's
// steps.
func (o *outputs) next(ctx context.Context) (out output) {
	if o.one != nil {
		out.Output, out.err = o.one.Next(ctx)
	} else {
		out.index, out.Output, out.more, out.err = o.joint.Next(ctx)
	}
	return out
}

// close gives up what hasn't ended.
func (o *outputs) close() {
	if o.one != nil {
		o.one.Close()
	} else {
		o.joint.Close()
	}
	o.left()
}
