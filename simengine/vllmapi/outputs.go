package vllmapi

import (
	"context"
	"sync"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
)

// outputs brings the streams of a request together.
type outputs struct {
	one    *live.Stream // if there is only one
	merged chan output
	cancel context.CancelFunc
	group  sync.WaitGroup
}

type output struct {
	simengine.Output
	index int
	err   error
}

// merge starts a goroutine for each of several streams. They end with their
// stream or with close.
func merge(streams []*live.Stream) *outputs {
	if len(streams) == 1 {
		return &outputs{one: streams[0]}
	}
	ctx, cancel := context.WithCancel(context.Background())
	o := &outputs{merged: make(chan output, len(streams)), cancel: cancel}
	for i, stream := range streams {
		o.group.Go(func() {
			defer stream.Close()
			for {
				out, err := stream.Next(ctx)
				select {
				case o.merged <- output{out, i, err}:
				case <-ctx.Done():
					return
				}
				if err != nil || out.Finished {
					return
				}
			}
		})
	}
	return o
}

// next waits for output of any stream.
func (o *outputs) next(ctx context.Context) output {
	if o.one != nil {
		out, err := o.one.Next(ctx)
		return output{out, 0, err}
	}
	select {
	case out := <-o.merged:
		return out
	case <-ctx.Done():
		return output{err: ctx.Err()}
	}
}

// close gives up what hasn't ended.
func (o *outputs) close() {
	if o.one != nil {
		o.one.Close()
		return
	}
	o.cancel()
	o.group.Wait()
}
