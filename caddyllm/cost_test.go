package caddyllm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// decider is all that a request costs beside its transport: the prompt is
// scanned and hashed, looked up at all upstreams, reserved and released.
type decider struct {
	scanner prompt.Scanner
	router  *route.Router
	targets []route.Target
	now     time.Time
}

func newDecider(upstreams int) *decider {
	d := &decider{router: route.New(route.Options{}), now: time.Unix(1_000_000, 0)}
	for i := range upstreams {
		d.targets = append(d.targets, route.Target{ID: fmt.Sprintf("engine%d:8000", i)})
	}
	return d
}

func (d *decider) decide(body []byte) bool {
	scanned, status := d.scanner.Scan(prompt.Chat, body, true, 0)
	if status != prompt.OK {
		return false
	}
	req := routeRequest(&scanned)
	d.now = d.now.Add(time.Second)
	c, ok := d.router.Pick(d.now, &req, d.targets)
	d.router.FirstByte(d.now, c.Ticket)
	d.router.Done(d.now, c.Ticket, route.Completed, nil)
	return ok
}

// longChat is a chat of about n bytes with the escapes that text has.
func longChat(n int) []byte {
	const line = `some words of plain prose, and \"code\"\n`
	return []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(line, n/len(line)+1) + `"}]}`)
}

// FC-30: the cost of a decision grows with the text and not with its square,
// and hardly with the number of upstreams. The least of several runs counts, so
// that a busy machine fails nothing.
func TestFC30TheCostOfADecisionIsLinear(t *testing.T) {
	least := func(d *decider, body []byte) time.Duration {
		best := time.Hour
		for range max(min(4<<20/len(body), 40), 6) {
			began := time.Now()
			if !d.decide(body) {
				t.Fatalf("no decision for %d bytes", len(body))
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	took := make(map[[2]int]time.Duration)
	for _, upstreams := range []int{4, 32, 256} {
		for _, size := range []int{1 << 10, 10 << 10, 100 << 10, 1 << 20, 10 << 20} {
			took[[2]int{upstreams, size}] = least(newDecider(upstreams), longChat(size))
			t.Logf("%3d upstreams, %8d bytes: %v", upstreams, size, took[[2]int{upstreams, size}])
		}
	}
	for _, upstreams := range []int{4, 32, 256} {
		at := func(size int) time.Duration { return took[[2]int{upstreams, size}] }
		if at(100<<10) > time.Millisecond || at(1<<20) > 10*time.Millisecond {
			t.Errorf("%d upstreams: 100 KiB take %v, at most 1 ms; 1 MiB %v, at most 10 ms", upstreams, at(100<<10), at(1<<20))
		}
		if at(10<<20) > 50*at(1<<20) { // its square would be 100 times
			t.Errorf("%d upstreams: 10 MiB take %v, 1 MiB %v", upstreams, at(10<<20), at(1<<20))
		}
	}
	if few, many := took[[2]int{4, 100 << 10}], took[[2]int{256, 100 << 10}]; many > 3*few {
		t.Errorf("100 KiB take %v among 4 upstreams, %v among 256", few, many)
	}
}

func BenchmarkDecision(b *testing.B) {
	for _, upstreams := range []int{4, 32, 256} {
		for _, size := range []int{1 << 10, 10 << 10, 100 << 10, 1 << 20, 10 << 20} {
			b.Run(fmt.Sprintf("%d upstreams/%d KiB", upstreams, size>>10), func(b *testing.B) {
				d, body := newDecider(upstreams), longChat(size)
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					d.decide(body)
				}
			})
		}
	}
}
