package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/gateway"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

// The soak through Caddy: short chats with three simulators without latency,
// each a prompt that nobody sent before but for the conversation it is of.
const (
	simulators = 3
	clients    = 8
	// goroutinesMore is how many more Caddy may have than after the first tenth.
	goroutinesMore = 60
)

func live(ctx context.Context, o options) (out outcome, err error) {
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return out, fmt.Errorf("making a directory: %w", err)
	}
	defer os.RemoveAll(dir)
	var children []*process.Child
	defer func() {
		for _, c := range children {
			c.Stop()
		}
	}()
	config := gateway.Config{Policy: "llm_prefix {\n\t\t\tmemory 4MiB\n\t\t}", Metrics: true, Admin: true}
	for i := range simulators {
		address, err := process.FreeAddress()
		if err != nil {
			return out, err
		}
		at := filepath.Join(dir, fmt.Sprint("server", i))
		if err := os.Mkdir(at, 0o700); err != nil {
			return out, fmt.Errorf("making a directory: %w", err)
		}
		c, err := process.Start(process.Spec{Path: o.vllmsim, Dir: at, LogOutput: true, Args: []string{
			"--listen", address, "--count", "1", "--speed", "10000",
		}})
		if err != nil {
			return out, err
		}
		children = append(children, c)
		if err := c.Await(ctx, func() bool { return process.Answers(address) }); err != nil {
			return out, err
		}
		config.Upstreams = append(config.Upstreams, address)
	}
	g, err := gateway.Start(ctx, dir, o.caddy, config)
	if err != nil {
		return out, err
	}
	children = append(children, g.Child)
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()

	var goroutines []int
	for tenth := range tenths {
		if n := chats(ctx, client, g.Address, o.seed, tenth, o.live/tenths); n > 0 {
			out.failed += n
		}
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		in, err := g.Look(ctx)
		if err != nil {
			return out, err
		}
		out.heap = append(out.heap, in.Heap)
		goroutines = append(goroutines, in.Goroutines)
	}
	inFlight, err := g.Sum(ctx, "caddy_llm_prefix_inflight_requests")
	if err != nil {
		return out, err
	}
	out.inFlight = int(inFlight)
	most := 0
	for _, n := range goroutines[1:] {
		most = max(most, n)
	}
	out.more = []check{{"through Caddy: most goroutines after the first tenth", float64(most), float64(goroutines[0] + goroutinesMore)}}
	return out, nil
}

// chats sends n requests of a tenth, and tells how many failed.
func chats(ctx context.Context, client *http.Client, address string, seed uint64, tenth, n int) int {
	var failed, next atomic.Int64
	var running sync.WaitGroup
	for worker := range clients {
		running.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(tenth*clients+worker)))
			for next.Add(1) <= int64(n) && ctx.Err() == nil {
				if err := one(ctx, client, address, rng); err != nil && failed.Add(1) == 1 {
					fmt.Fprintln(os.Stderr, "soak:", err)
				}
			}
		})
	}
	running.Wait()
	return int(failed.Load())
}

func one(ctx context.Context, client *http.Client, address string, rng *rand.Rand) error {
	stream := rng.IntN(2) == 0
	prompt := make([]byte, 600+rng.IntN(2000))
	talk := rng.Uint64N(500)
	for i := range prompt {
		if i == 400 { // the turn, after what the conversation has in common
			talk = rng.Uint64()
		}
		prompt[i] = 'a' + byte((talk>>(i%59)+uint64(i)*talk%7)%26)
	}
	body, err := json.Marshal(map[string]any{
		"model": "llama3.1-8b", "stream": stream, "max_tokens": 4, "messages": []map[string]string{{"role": "user", "content": string(prompt)}},
	})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	return nil
}
