package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/replay"
)

// killLook is the time between two looks at what waits on the victim.
const killLook = 20 * time.Millisecond

// killer kills a server in the middle of a replay, while requests are there
// whose answers have not begun: those are what a gateway can save.
type killer struct {
	victim  *server
	metrics string // of the gateway
	after   int    // requests
	done    int
	due     chan struct{} // closed when so many requests are done
	ended   chan struct{} // closed when run has returned
	waiting int
	err     error
}

func newKiller(victim *server, metrics string, after int) *killer {
	return &killer{victim: victim, metrics: metrics, after: max(after, 1), due: make(chan struct{}), ended: make(chan struct{})}
}

// count is called after each request, never concurrently.
func (k *killer) count(replay.Record) {
	if k.done++; k.done == k.after {
		close(k.due)
	}
}

// run waits for the moment, and kills.
func (k *killer) run(ctx context.Context) {
	defer close(k.ended)
	select {
	case <-k.due:
	case <-ctx.Done():
		k.err = errors.New("killing a server: too few requests")
		return
	}
	tick := time.NewTicker(killLook)
	defer tick.Stop()
	for k.waiting == 0 {
		text, err := page(ctx, k.metrics)
		if err != nil {
			k.err = fmt.Errorf("killing a server: %w", err)
			return
		}
		if k.waiting = waitingOn(text, k.victim.address); k.waiting > 0 {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			k.err = errors.New("killing a server: it never had work")
			return
		}
	}
	k.victim.Kill()
}

// result is how many requests were in flight at the server as it was killed.
func (k *killer) result() (int, error) {
	select {
	case <-k.ended:
		return k.waiting, k.err
	default:
		return 0, errors.New("killing a server: it never had work")
	}
}

// waitingOn reads from the gateway's metrics how many requests are in flight at
// an upstream. Asked for whole, none of their answers has begun.
func waitingOn(page, address string) int {
	sum := 0
	for line := range strings.Lines(page) {
		m := sampleLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || m[1] != "caddy_llm_prefix_inflight_requests" || !strings.Contains(m[2], `upstream="`+address+`"`) {
			continue
		}
		n := 0
		if _, err := fmt.Sscan(m[3], &n); err == nil {
			sum += n
		}
	}
	return sum
}
