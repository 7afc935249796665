package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// recordLeaving records the gauges while clients leave.
func (r *recorder) recordLeaving(ctx context.Context, dir string) error {
	s := leaveShape
	bounded, err := r.has("max_num_queued_reqs")
	if err != nil {
		return err
	}
	if bounded {
		s.requests = 4 // as many as a story has at once
	}
	v, err := r.start(ctx, dir, s)
	if err != nil {
		return err
	}
	defer v.Stop()
	for _, name := range []string{"streamed", "whole"} {
		story, err := leaving(ctx, v.address, name == "streamed")
		if err != nil {
			return err
		}
		if err := r.write(filepath.Join("leave", name+".jsonl"), jsonLines(story)); err != nil {
			return err
		}
	}
	if !bounded {
		return nil
	}
	return r.recordFull(ctx, v.address, s.requests)
}

// recordFull records what a server says that takes no more requests.
func (r *recorder) recordFull(ctx context.Context, address string, most int) error {
	var clients []*client
	for i := range most {
		clients = append(clients, launch(ctx, address, 20+i, 1400, true))
	}
	_, err := until(ctx, address, "a full server", func(g gauges) bool { return g.Running+g.Waiting == float64(most) })
	if err != nil {
		return err
	}
	for _, x := range []exchange{
		{name: "chat", path: "/v1/chat/completions", body: chat(`"max_tokens": 1`)},
		{name: "chat-stream", path: "/v1/chat/completions", body: chat(`"max_tokens": 1, "stream": true`)},
		{name: "completion", path: "/v1/completions", body: complete(`"max_tokens": 1`)},
		{name: "messages", path: "/v1/messages", body: `{"model": "` + modelName + `", "max_tokens": 1, "messages": [{"role": "user", "content": "Where?"}]}`},
		{name: "health", path: "/health"},
	} {
		x.fill()
		a, err := x.send(ctx, address)
		if err != nil {
			return err
		}
		r.say("%3d full: %s", a.status, x.name)
		if err := r.write(filepath.Join("full", x.name+".txt"), r.scrub(x.write(a))); err != nil {
			return err
		}
	}
	text, err := page(ctx, address)
	if err != nil {
		return err
	}
	if err := r.write(filepath.Join("full", "metrics.prom"), r.scrubMetrics([]byte(text))); err != nil {
		return err
	}
	for _, c := range clients {
		if err := c.leave(); err != nil {
			return err
		}
	}
	return nil
}

// has says whether this vLLM's configuration has a field of the name.
func (r *recorder) has(field string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(r.environment(), "lib", "python*", "site-packages", "vllm", "engine", "arg_utils.py"))
	if err != nil || len(files) == 0 {
		return false, errors.Join(errors.New("looking for vLLM's options: no such file"), err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return false, fmt.Errorf("looking for vLLM's options: %w", err)
	}
	return bytes.Contains(text, []byte(field)), nil
}
