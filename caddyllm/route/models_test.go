package route_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// FC-25: engines keep the blocks of a model and of each of its adapters apart,
// so the same text for another adapter is a cold prompt.
func TestFC25ModelOrAdapterBelongsToTheKey(t *testing.T) {
	r := route.New(route.Options{})
	now := time.Unix(1_000_000, 0)
	targets := []route.Target{{ID: "a:8000"}, {ID: "b:8000"}, {ID: "c:8000"}}
	var s prompt.Scanner
	text := strings.Repeat("a long conversation ", 512) // 10 KiB
	pick := func(model string, turn int) route.Choice {
		t.Helper()
		body := fmt.Sprintf(`{"messages":[{"role":"user","content":"%s"},{"role":"user","content":"turn %d"}],"stream":true,"model":"%s"}`, text, turn, model)
		p, status := s.Scan(prompt.Chat, []byte(body), true, 256)
		if status != prompt.OK {
			t.Fatalf("status %v", status)
		}
		c, _ := r.Pick(now, &route.Request{Chain: p.Chain, Bytes: p.Bytes, Model: p.Model, Stream: p.Stream}, targets)
		return c
	}
	answer := func(c route.Choice) route.Choice {
		now = now.Add(300 * time.Millisecond)
		r.FirstByte(now, c.Ticket)
		now = now.Add(100 * time.Millisecond)
		r.Done(now, c.Ticket, route.Completed, nil)
		return c
	}
	base := answer(pick("base", 0)).Index
	for turn := 1; turn < 4; turn++ {
		if c := answer(pick("base", turn)); c.Index != base || c.MatchedBlocks < 30 {
			t.Fatalf("base, turn %d: on %d with %d blocks, want %d with nearly all", turn, c.Index, c.MatchedBlocks, base)
		}
	}
	for range 3 { // others queue at the warm upstream
		now = now.Add(time.Second)
		for i, target := range targets {
			l := route.Load{Waiting: route.Known(0), Running: route.Known(0)}
			if i == base {
				l.Waiting = route.Known(4)
			}
			r.Scraped(now, target.ID, &l)
		}
	}
	adapter := answer(pick("lora-1", 0))
	if adapter.Index == base || adapter.MatchedBlocks != 0 || adapter.Reason != route.ReasonCold {
		t.Errorf("the adapter's first goes to %d by %q with %d blocks, want an idle upstream and no match", adapter.Index, adapter.Reason, adapter.MatchedBlocks)
	}
	for _, target := range targets {
		r.Scraped(now, target.ID, &route.Load{Waiting: route.Known(0), Running: route.Known(0)})
	}
	for turn := 1; turn < 6; turn++ {
		if c := answer(pick("lora-1", turn)); c.Index != adapter.Index {
			t.Errorf("lora-1, turn %d: on %d, want %d", turn, c.Index, adapter.Index)
		}
		if c := answer(pick("base", 10+turn)); c.Index != base {
			t.Errorf("base, turn %d: on %d, want %d", 10+turn, c.Index, base)
		}
	}
}
