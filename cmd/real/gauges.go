package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// gauges are what one page of metrics says of a server's load.
type gauges struct {
	Running  float64            `json:"running"`
	Waiting  float64            `json:"waiting"`
	KV       float64            `json:"-"`
	KVInUse  bool               `json:"kv_in_use"`
	Finished map[string]float64 `json:"finished"` // by reason
	Hits     float64            `json:"prefix_cache_hits"`
	Queries  float64            `json:"prefix_cache_queries"`
	Prompt   float64            `json:"prompt_tokens"`
}

// readGauges sums over engines. Names are the newest's first, old ones after it.
func readGauges(page string) gauges {
	g := gauges{Finished: make(map[string]float64)}
	values := make(map[string]float64)
	for line := range strings.Lines(page) {
		m := sampleLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			continue
		}
		values[m[1]] += v
		if m[1] == "vllm:request_success_total" {
			_, rest, _ := strings.Cut(m[2], `finished_reason="`)
			reason, _, _ := strings.Cut(rest, `"`)
			g.Finished[reason] += v
		}
	}
	first := func(names ...string) float64 {
		for _, name := range names {
			if v, ok := values["vllm:"+name]; ok {
				return v
			}
		}
		return 0
	}
	g.Running, g.Waiting = first("num_requests_running"), first("num_requests_waiting")
	g.KV = first("kv_cache_usage_perc", "gpu_cache_usage_perc")
	g.KVInUse = g.KV > 0
	g.Hits = first("prefix_cache_hits_total", "gpu_prefix_cache_hits_total")
	g.Queries = first("prefix_cache_queries_total", "gpu_prefix_cache_queries_total")
	g.Prompt = first("prompt_tokens_total")
	return g
}

// since leaves out of the counters what was there before.
func (g gauges) since(base gauges) gauges {
	for reason, n := range base.Finished {
		g.Finished[reason] -= n
	}
	g.Hits, g.Queries, g.Prompt = g.Hits-base.Hits, g.Queries-base.Queries, g.Prompt-base.Prompt
	return g
}

// page fetches a server's metrics.
func page(ctx context.Context, address string) (string, error) {
	x := exchange{name: "metrics", method: http.MethodGet, path: "/metrics"}
	a, err := x.send(ctx, address)
	if err != nil {
		return "", err
	}
	return string(a.body), nil
}

// until polls the gauges until they are as wanted, and returns that page.
func until(ctx context.Context, address, what string, wanted func(gauges) bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		text, err := page(ctx, address)
		if err != nil {
			return "", fmt.Errorf("waiting for %s: %w", what, err)
		}
		if g := readGauges(text); wanted(g) {
			return text, nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// client is a request under way whose client can leave.
type client struct {
	cancel context.CancelFunc
	begun  chan struct{} // closed at the first byte of the answer's body, or the end
	done   chan error
}

// launch sends a completion and reads its answer until it ends or leave is
// called. The goroutine ends then.
func launch(ctx context.Context, address string, prompt, maxTokens int, stream bool) *client {
	ctx, cancel := context.WithCancel(ctx)
	c := &client{cancel: cancel, begun: make(chan struct{}), done: make(chan error, 1)}
	body := fmt.Sprintf(`{"model": %q, "prompt": [%s], "max_tokens": %d, "ignore_eos": true, "temperature": 0, "stream": %t}`,
		modelName, numbers(100, prompt), maxTokens, stream)
	go func() {
		begun := false
		begin := func() {
			if !begun {
				begun = true
				close(c.begun)
			}
		}
		defer begin()
		c.done <- func() error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/completions", strings.NewReader(body))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			// A connection of its own, so that leaving closes it.
			transport := &http.Transport{DisableKeepAlives: true}
			res, err := transport.RoundTrip(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				text, _ := io.ReadAll(io.LimitReader(res.Body, 300))
				return fmt.Errorf("status %d: %s", res.StatusCode, text)
			}
			var first [1]byte
			if _, err := res.Body.Read(first[:]); err != nil {
				return err
			}
			begin()
			_, err = io.Copy(io.Discard, res.Body)
			return err
		}()
	}()
	return c
}

// leave closes the client's connection, and waits until it is closed.
func (c *client) leave() error {
	c.cancel()
	if err := <-c.done; !errors.Is(err, context.Canceled) {
		return fmt.Errorf("leaving: the answer ended before: %w", errors.Join(errors.New("too fast a server"), err))
	}
	return nil
}

// numbers is a list of count token ids from first on.
func numbers(first, count int) string {
	var b strings.Builder
	for i := range count {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(first + i))
	}
	return b.String()
}
