package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Inside is what Caddy's process looks like.
type Inside struct {
	Goroutines int
	Heap       float64 // MiB that are alive, after a collection
}

// Look asks the admin endpoint how the process looks.
func (g *Gateway) Look(ctx context.Context) (in Inside, err error) {
	heap, err := g.Ask(ctx, "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return in, err
	}
	bytes, err := number(heap, "# HeapAlloc = ")
	if err != nil {
		return in, err
	}
	in.Heap = bytes / (1 << 20)
	goroutines, err := g.Ask(ctx, "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return in, err
	}
	n, err := number(goroutines, "goroutine profile: total ")
	in.Goroutines = int(n)
	return in, err
}

// Ask gets a page of the admin endpoint.
func (g *Gateway) Ask(ctx context.Context, path string) (string, error) {
	return get(ctx, g.Admin, path)
}

// Sum adds up the series of a name on Caddy's own page of metrics.
func (g *Gateway) Sum(ctx context.Context, name string) (float64, error) {
	page, err := get(ctx, g.Metrics, "/metrics")
	if err != nil {
		return 0, err
	}
	return sum(page, name)
}

func sum(page, name string) (total float64, err error) {
	for line := range strings.Lines(page) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		if err != nil {
			return 0, fmt.Errorf("reading metrics: %q: %w", line, err)
		}
		total += v
	}
	return total, nil
}

// number is the one that follows a word at the beginning of a line.
func number(text, word string) (float64, error) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, word); ok {
			return strconv.ParseFloat(strings.TrimSpace(rest), 64)
		}
	}
	return 0, fmt.Errorf("looking into Caddy: there is no %q", word)
}

// maxPage bounds a page, bytes; and a question takes askLimit at most.
const (
	maxPage  = 64 << 20
	askLimit = 20 * time.Second
)

func get(ctx context.Context, address, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return "", fmt.Errorf("looking into Caddy: %w", err)
	}
	req.Close = true // a connection that stays would be counted
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("looking into Caddy: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxPage))
	if err != nil {
		return "", fmt.Errorf("looking into Caddy: %s: %w", path, err)
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("looking into Caddy: %s: status %d", path, res.StatusCode)
	}
	return string(text), nil
}
