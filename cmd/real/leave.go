package main

import (
	"bytes"
	"context"
	"encoding/json"
)

// moment is what the gauges say at one point of a story.
type moment struct {
	After string `json:"after"`
	gauges
}

// leaving tells how the gauges follow clients that leave: in decode, while
// queued, in prefill. The server runs two at once and computes few tokens a
// step, so that each state lasts. Every client has a prompt of its own length,
// with a common beginning.
func leaving(ctx context.Context, address string, stream bool) ([]moment, error) {
	var story []moment
	text, err := page(ctx, address)
	if err != nil {
		return nil, err
	}
	base := readGauges(text)
	see := func(after string, running, waiting float64, more func(gauges) bool) error {
		text, err := until(ctx, address, after, func(g gauges) bool {
			return g.Running == running && g.Waiting == waiting && (more == nil || more(g.since(base)))
		})
		if err == nil {
			story = append(story, moment{After: after, gauges: readGauges(text).since(base)})
		}
		return err
	}
	const long, short = 1400, 20
	var a, b, c, d, e *client
	steps := []func() error{
		func() error { return see("start", 0, 0, nil) },
		func() error {
			a = launch(ctx, address, short, long, stream)
			return see("a decodes", 1, 0, func(g gauges) bool { return g.Prompt > 0 })
		},
		func() error {
			b = launch(ctx, address, short+1, long, stream)
			return see("b decodes", 2, 0, func(g gauges) bool { return g.Prompt > short })
		},
		func() error { c = launch(ctx, address, short+2, long, stream); return see("c waits", 2, 1, nil) },
		func() error { d = launch(ctx, address, short+3, long, stream); return see("d waits", 2, 2, nil) },
		func() error { return c.leave() },
		func() error { return see("c left while queued", 2, 1, nil) },
		func() error { return a.leave() },
		func() error { return see("a left in decode, d takes its place", 2, 0, nil) },
		func() error { return b.leave() },
		func() error { return see("b left in decode", 1, 0, nil) },
		func() error { return d.leave() },
		func() error { return see("d left in decode", 0, 0, func(g gauges) bool { return !g.KVInUse }) },
		func() error {
			e = launch(ctx, address, long, short, stream)
			return see("e is in prefill", 1, 0, func(g gauges) bool { return g.KVInUse })
		},
		func() error { return e.leave() },
		func() error { return see("e left in prefill", 0, 0, func(g gauges) bool { return !g.KVInUse }) },
	}
	for _, do := range steps {
		if err := do(); err != nil {
			return story, err
		}
	}
	return story, nil
}

// jsonLines writes values one a line.
func jsonLines[T any](values []T) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, v := range values {
		_ = e.Encode(v)
	}
	return b.Bytes()
}
